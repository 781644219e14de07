"""The confined child: one request a line, one answer a line.

Nothing that it says is trusted. It may answer whatever it likes, as the agent's code itself could
return whatever it likes, but it doesn't know what the test expects.
"""

import importlib
import itertools
import json
import operator
import os
import sys

from candidate_values import packed, unpacked

_objects = []
_numbers = {}


def _number(value):
    if id(value) not in _numbers:
        _numbers[id(value)] = len(_objects)
        _objects.append(value)
    about = {"number": _numbers[id(value)], "type": type(value).__name__}
    if isinstance(value, type):
        about["type"] = value.__name__
        if issubclass(value, BaseException):
            about["error"] = [base.__name__ for base in value.__mro__]
    return about


def _in(value):
    return unpacked(value, lambda held: _objects[held["number"]])


def _out(value):
    return packed(value, _number)


def _do(request):
    what, *rest = request
    if what == "import":
        return _out(importlib.import_module(rest[0]))
    if what == "get":
        return _out(getattr(_in(rest[0]), rest[1]))
    if what == "set":
        return _out(setattr(_in(rest[0]), rest[1], _in(rest[2])))
    if what == "call":
        called, arguments, named = (_in(part) for part in rest)
        result = called(*arguments, **named)
        return {"result": _out(result), "arguments": [_out(each) for each in arguments]}
    if what == "iterate":
        return _out(list(itertools.islice(_in(rest[0]), 100_000)))
    function = {"len": len, "str": str, "bool": bool}.get(rest[0]) or getattr(operator, rest[0])
    return _out(function(*(_in(each) for each in rest[1:])))


def main():
    """Answer until the test ends."""
    requests = os.fdopen(os.dup(0), "r", encoding="ascii")
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path.insert(0, sys.argv[1])
    for line in requests:
        try:
            request = json.loads(line)
            sys.path[:0] = [place for place in request[0] if place not in sys.path]
            answer = {"value": _do(request[1:])}
        except Exception as error:
            answer = {
                "error": _number(type(error))["number"],
                "names": [base.__name__ for base in type(error).__mro__],
                "text": str(error)[:2000],
            }
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


main()
