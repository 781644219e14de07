"""Calls: functions of the program, pure ones, methods of values, and those with effects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import (
    ANY,
    EITHER,
    OPAQUE,
    choices,
    degraded,
    known,
)
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.limits import small_product
from harness_adapters.guard.effects.python.members import attribute, iterated
from harness_adapters.guard.effects.python.pure import PURE, STRING_METHODS, sized
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Alt,
    Function,
    Handle,
    Instance,
    Method,
    Partial,
    PathValue,
    Ref,
    Template,
    Unknown,
    Value,
    either,
    is_concrete,
    is_dark,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program

_TAKES_FILES = re.compile(r"read|load|open|parse|import|scan|copy|extract|file|path|add$|connect")
_REQUESTS = frozenset(
    {
        *("get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "open"),
        *("urlopen", "retrieve", "goto", "fetch", "ws_connect", "connect", "download", "navigate"),
    }
)
"""Methods of clients of the web, whatever the library."""
_OVER_ITEMS = frozenset({"map", "imap", "imap_unordered", "map_async", "thread_map", "process_map"})
_WITH_ARGUMENTS = frozenset(
    {"submit", "apply", "apply_async", "call_soon", "run_sync", "to_thread"}
)
"""Methods of pools that call a function with the items of a list, or with what follows it."""
_RUNNERS = frozenset({"run", "sudo", "local", "shell", "system", "getoutput", "exec_command"})
"""Methods that take a command, of task runners and the like."""
_SILENT = frozenset(
    {
        *("re", "math", "json", "logging", "argparse", "collections", "itertools", "functools"),
        *("datetime", "random", "string", "textwrap", "typing", "dataclasses", "enum", "warnings"),
        *("decimal", "fractions", "statistics", "operator", "hashlib", "hmac", "copy", "abc"),
        *("contextlib", "time", "calendar", "uuid", "secrets", "struct", "pprint", "traceback"),
        *("isinstance", "issubclass", "hasattr", "type", "super", "id", "hash", "callable"),
        *("print", "input", "staticmethod", "classmethod", "property", "object", "Exception"),
        *("ValueError", "RuntimeError", "KeyError", "TypeError", "click", "typer", "unittest"),
        *("AssertionError", "FileNotFoundError", "SystemExit", "exit", "quit", "dir", "help"),
    }
)


def call(program: Program, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Effects and value of one call."""
    world = program.world
    world.step()
    if isinstance(function, Alt):
        return either([call(program, item, args, kwargs) for item in function.values])
    if isinstance(function, Function):
        return program.call(function, args, kwargs)
    if isinstance(function, Partial):
        return call(program, function.function, [*function.args, *args], function.kwargs | kwargs)
    if isinstance(function, Instance):
        return _construct(program, function, args, kwargs)
    if isinstance(function, Method):
        return _method(program, function, args, kwargs)
    if isinstance(function, Ref):
        return _external(program, function.name, args, kwargs)
    if isinstance(function, Unknown) and function.dark:
        world.emit(Kind.UNRESOLVED, "code")
        return DARK
    _callbacks(program, args, kwargs)
    return DATA


def _construct(
    program: Program, cls: Instance, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    if cls.cls is not None:
        called = attribute(program, cls, "__call__")
        return call(program, called, args, kwargs) if isinstance(called, Function) else DATA
    made = Instance(cls=cls)
    init = attribute(program, made, "__init__")
    if isinstance(init, Function):
        program.call(init, args, kwargs)
        return made
    # A dataclass, a named tuple: fields by position or name.
    fields = [n for n, v in cls.attributes.items() if not isinstance(v, Function)]
    made.attributes |= dict(zip(fields, args, strict=False))
    made.attributes |= {k: v for k, v in kwargs.items() if k not in made.attributes}
    return made


def _callbacks(program: Program, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Functions that are handed over may be called with anything, or with what comes along."""
    target, given = kwargs.get("target"), kwargs.get("args", ())
    if isinstance(target, (Function, Ref, Partial)) and isinstance(given, (list, tuple)):
        call(program, target, list(given), {})
    for value in [*args, *kwargs.values()]:
        if isinstance(value, Function) and id(value.node) not in program.called:
            program.call(value, [], {}, unknown=True)


def _external(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.library import effect_of

    if name in ("map", "filter") and len(args) >= 2:
        return _mapped(program, name, args)
    if name == "functools.reduce" and len(args) >= 2:
        return _reduced(program, args)
    pure = PURE.get(name)
    if pure is not None:
        return _worked_out(program, name, pure, args, kwargs)
    found = effect_of(program, name, args, kwargs)
    if found is not NotImplemented:
        return found
    _callbacks(program, args, kwargs)
    root = name.split(".", 1)[0]
    if root not in _SILENT:
        # A library that isn't modelled: what looks like a path of elsewhere may be opened.
        for value in [*args, *kwargs.values()]:
            if isinstance(value, PathValue):
                program.world.emit(Kind.READ, program.world.path(value.text))
                continue
            if not isinstance(value, str) or len(value) > 4096 or "\n" in value:
                continue
            for text in choices(value):
                if text.startswith(("/", "~/", "../")) or "/../" in text:
                    program.world.emit(Kind.READ, program.world.path(text))
                elif re.match(r"https?://", text):
                    from harness_adapters.guard.effects.shell.commands.table import host_of

                    program.world.emit(Kind.NETWORK, host_of(text))
    return DARK if any(is_dark(v) for v in args) else DATA


def _worked_out(
    program: Program, name: str, pure: object, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    assert callable(pure)
    if all(map(is_concrete, args)) and all(map(is_concrete, kwargs.values())):
        try:
            return sized(pure(*args, **kwargs))
        except Exception:
            return DARK
    if args and args[0] == Ref("os.environ"):
        if name in ("str", "repr", "json.dumps", "sorted"):
            program.world.emit(Kind.ENVIRONMENT, "<all>")
        # A copy of it is still the environment when it is shown.
        return args[0]
    if name == "str" and args:
        return text_of(args[0])
    if name in ("list", "tuple", "sorted", "iter", "set", "reversed") and args:
        items = iterated(program, args[0])
        return items[::-1] if name == "reversed" else items
    if name == "dict" and not args:
        return dict(kwargs)
    if name in ("zip",) and all(isinstance(a, (list, tuple)) for a in args):
        return [tuple(row) for row in zip(*args, strict=False)]
    if name == "enumerate" and args:
        return [(n, v) for n, v in enumerate(iterated(program, args[0]))]
    if name.startswith("os.path.") and args:
        text = text_of(args[0])
        if EITHER in text:
            return either(
                [_worked_out(program, name, pure, [c, *args[1:]], kwargs) for c in choices(text)]
            )
        try:
            return pure(text)
        except Exception:
            return DARK
    if name == "len":
        return DATA
    if any(is_dark(v) for v in args) or any(
        isinstance(v, str) and OPAQUE in degraded(v) for v in args
    ):
        return DARK
    return DATA


def _mapped(program: Program, name: str, args: list[Value]) -> Value:
    items = [iterated(program, each) for each in args[1:]]
    rows = list(zip(*items, strict=False))[:4096]
    made = [call(program, args[0], list(row), {}) for row in rows]
    return made if name == "map" else list(items[0])


def _reduced(program: Program, args: list[Value]) -> Value:
    items = ([args[2]] if len(args) > 2 else []) + iterated(program, args[1])
    if not items:
        return DATA
    total = items[0]
    for each in items[1:4096]:
        total = call(program, args[0], [total, each], {})
    return total


def _method(program: Program, method: Method, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.objects import handle_method, path_method

    owner, name = method.owner, method.name
    if isinstance(owner, PathValue):
        return path_method(program, owner, name, args, kwargs)
    if isinstance(owner, Handle):
        return handle_method(program, owner, name, args, kwargs)
    if isinstance(owner, Template):
        return _substituted(owner.text, args, kwargs)
    if isinstance(owner, Unknown):
        return _on_unknown(program, name, args, kwargs)
    if isinstance(owner, list) and name in ("append", "extend", "insert", "pop", "reverse", "sort"):
        return _list_method(program, owner, name, args)
    if (
        isinstance(owner, (str, bytes, dict, list, int, float, bytearray))
        and name in STRING_METHODS
    ):
        return _value_method(program, owner, name, args, kwargs)
    if isinstance(owner, str) and not known(owner):
        return DARK if is_dark(owner) else DATA
    if isinstance(owner, dict) and name in ("update", "setdefault", "pop"):
        if name == "update" and args and isinstance(args[0], dict):
            owner.update(args[0])
        return owner.get(args[0], DATA) if args and isinstance(args[0], str) else DATA
    return DARK if is_dark(owner) else DATA


def _on_unknown(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A method of an object that isn't known; those that write a file say so by their names."""
    from harness_adapters.guard.effects.python.objects import READS, WRITES

    if args and isinstance(args[0], (Function, Ref, Partial)):
        if name in _OVER_ITEMS and len(args) > 1:
            return _mapped(program, "map", args[:2])
        if name in _WITH_ARGUMENTS:
            rest = args[1] if name.startswith("apply") and len(args) == 2 else args[1:]
            return call(program, args[0], list(rest) if isinstance(rest, (list, tuple)) else [], {})
    _callbacks(program, args, kwargs)
    world = program.world
    if name in _RUNNERS and args and isinstance(args[0], str):
        from harness_adapters.guard.effects.python.processes import run_text
        from harness_adapters.guard.effects.shell.commands.table import COMMANDS

        if args[0].partition(" ")[0] in COMMANDS:
            return Handle(run_text(program, args[0]))
    paths = [v for v in [*args[:1], *kwargs.values()] if isinstance(v, (str, PathValue))]
    if name in _REQUESTS:
        for value in [*args, *kwargs.values()]:
            if isinstance(value, str) and re.match(r"(?:https?|wss?|ftp)://", value):
                from harness_adapters.guard.effects.shell.commands.table import host_of

                world.emit(Kind.NETWORK, host_of(value))
    if name in WRITES or name.startswith("to_"):
        for value in paths:
            text = text_of(value)
            if "/" in text or "." in text:
                for each in choices(text):
                    world.write(each, None)
    elif name in READS or name.startswith("read_"):
        for value in paths:
            if "\n" not in text_of(value):
                for each in choices(text_of(value)):
                    world.read(each)
    elif _TAKES_FILES.search(name):
        for value in [*args, *kwargs.values()]:
            if isinstance(value, PathValue) or (
                isinstance(value, str) and value.startswith(("/", "~/")) and "\n" not in value
            ):
                for each in choices(text_of(value)):
                    world.emit(Kind.READ, world.path(each))
    return DATA


def _list_method(program: Program, owner: list[Value], name: str, args: list[Value]) -> Value:
    if name == "append" and args and len(owner) < 4096:
        owner.append(args[0])
    elif name == "extend" and args:
        owner.extend(iterated(program, args[0])[:4096])
    elif name == "insert" and len(args) == 2 and isinstance(args[0], int):
        owner.insert(args[0], args[1])
    elif name == "reverse":
        owner.reverse()
    elif name == "pop" and owner:
        place = args[0] if args and isinstance(args[0], int) else -1
        return owner.pop(place) if -len(owner) <= place < len(owner) else DATA
    return None


def _value_method(
    program: Program, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    if isinstance(owner, dict) and name in ("get", "keys", "values", "items", "copy"):
        return _dict_method(owner, name, args)
    if is_concrete(owner) and all(map(is_concrete, [*args, *kwargs.values()])):
        try:
            if name in ("format", "format_map") and re.search(r":[^}]*\d{4}", text_of(owner)):
                return DARK
            if not small_product(owner, *args, *kwargs.values()):
                return DARK
            if name in ("decode", "encode") and args:
                return PURE[f"codecs.{name}"](owner, args[0])
            return sized(getattr(owner, name)(*args, **kwargs))
        except Exception:
            return DARK
    if name == "join" and args and isinstance(owner, str):
        parts = [text_of(item) for item in iterated(program, args[0])]
        return owner.join(parts) if small_product(owner + "x", parts) else OPAQUE
    if name == "format" and isinstance(owner, str):
        return _format(owner, args, kwargs)
    if name == "replace" and len(args) == 2 and is_concrete(args):
        return text_of(owner).replace(text_of(args[0]), text_of(args[1]))
    if name in ("strip", "rstrip", "lstrip", "encode", "decode", "copy"):
        return owner if isinstance(owner, str) else text_of(owner)
    if name in ("split", "splitlines", "rsplit") and isinstance(owner, str):
        mark = text_of(args[0]) if args and isinstance(args[0], str) else None
        return owner.split(mark) if name != "splitlines" else owner.splitlines()
    if name in ("startswith", "endswith", "find", "index", "count"):
        return DATA
    return degraded(text_of(owner)) or DATA


def _substituted(text: str, args: list[Value], kwargs: dict[str, Value]) -> str:
    """`string.Template.substitute`."""
    values = {**(args[0] if args and isinstance(args[0], dict) else {}), **kwargs}

    def one(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return text_of(values[name]) if name in values else ANY

    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", one, text).replace("$$", "$")


def _dict_method(owner: dict[Value, Value], name: str, args: list[Value]) -> Value:
    if name == "get":
        default = args[1] if len(args) > 1 else None
        if args and isinstance(args[0], (str, int)):
            return owner.get(args[0], default)
        return either([*owner.values(), default])
    if name == "items":
        return list(owner.items())
    return {"keys": list(owner), "values": list(owner.values()), "copy": dict(owner)}[name]


def _format(form: str, args: list[Value], kwargs: dict[str, Value]) -> str:
    counter = iter(range(len(args)))

    def one(match: re.Match[str]) -> str:
        name = match[1]
        if name == "":
            place = next(counter, None)
            return text_of(args[place]) if place is not None else ANY
        if name.isdigit():
            return text_of(args[int(name)]) if int(name) < len(args) else ANY
        return text_of(kwargs[name]) if name in kwargs else ANY

    return re.sub(r"\{(\w*)[^{}]*\}", one, form)
