"""JSON from an upstream, read so that no client can see more in it than was judged."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any


class Unreadable(Exception):  # noqa: N818 - a state of the stream; never leaves this package
    """An answer that can't be judged, so that nothing more of it may pass; the text says why."""


class NotJson(Unreadable):
    """Text that is no JSON at all."""


class Oversize(Unreadable):
    """A call or an event beyond the limits."""


_CALL_KEY = re.compile(
    r"(?:server|mcp|custom|client|computer|shell)?(?:tool|function|computer|shell)(?:call|use|invocation)s?"
    r"(?:delta|chunk|block)?s?"
)
_CALL_TYPE = re.compile(
    r"(?<!clear_)tool_?use|tool_?call|function_?call|input_?json|_call(?:_|\b)", re.I
)
_ARGUMENTS = {"arguments", "args", "partial_json"}
"""Keys that make a call of an object with a name."""

_TRACE = re.compile(
    # Escaped ASCII, and the two other letters that fold to ASCII ones, could spell any of the rest.
    r"\\u(?:00|212a|017f)|tool|function|call|use|invocation|arguments|args|partial",
    re.I,
)
"""In every text in which `carries_call` could find something."""

_LONGEST_NAME = 100
"""Of a key that can be one of the above."""
_NOT_SCANNED = "usage"
"""Numbers. Anthropic counts the calls that ran on its servers there, under the name of a call."""


def load(text: str | bytes) -> Any:
    """The value of a JSON text. Raises Unreadable, also where an object has one key twice.

    Of two equal keys some libraries take the first and some the last, so that a call could hide
    behind a harmless twin.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        raise NotJson("what should be JSON is not") from None


def load_plain(text: str) -> Any:
    """The value of a JSON text that has no trace of a call, None for all others.

    Most of a stream is words: for those the slower ways of looking are left out. Raises NotJson.
    """
    if _TRACE.search(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise NotJson("what should be JSON is not") from None


def carries_call(value: Any) -> bool:
    """Whether anything in `value` has the name or the type of a tool call of any format.

    Spelling in other cases and with other separators counts as well: some libraries read it.
    """
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack += [one for one in item if isinstance(one, dict | list)]
        elif isinstance(item, dict):
            if "name" in item and not _ARGUMENTS.isdisjoint(item):
                return True
            for key, held in item.items():
                if isinstance(held, dict | list):
                    if held and _names_call(key):
                        return True
                    if key != _NOT_SCANNED:
                        stack.append(held)
                elif isinstance(held, str) and held and _says_call(key, held):
                    return True
    return False


def without(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The same object less some keys."""
    return {key: value for key, value in values.items() if key not in keys}


def one_spelling(values: dict[str, Any]) -> dict[str, Any]:
    """`values`; raises Unreadable when two keys differ in case only: libraries differ on those."""
    if len({key.casefold() for key in values}) != len(values):
        raise Unreadable("a call has one key in two spellings")
    return values


def an_object(value: Any, what: str) -> dict[str, Any]:
    """`value`, when it is an object. Raises Unreadable."""
    if not isinstance(value, dict):
        raise Unreadable(f"{what} is not an object")
    return value


def an_index(value: Any, what: str) -> int:
    """`value`, when it is a number from 0 on. Raises Unreadable."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Unreadable(f"{what} has no index")
    return value


def a_text(value: Any, what: str) -> str:
    """`value`, when it is a string; empty for null. Raises Unreadable."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Unreadable(f"{what} is not a string")
    return value


def dumps(value: Any) -> bytes:
    """JSON on one line, plain ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise Unreadable("an object has one key twice")
    return values


def _says_call(key: str, text: str) -> bool:
    return _names_call(key) or (_is_type(key) and _CALL_TYPE.search(text) is not None)


@lru_cache(4096)
def _names_call(key: str) -> bool:
    if len(key) > _LONGEST_NAME:
        return False
    return _CALL_KEY.fullmatch(re.sub(r"[\W_]", "", key.casefold())) is not None


@lru_cache(4096)
def _is_type(key: str) -> bool:
    return key.casefold() in ("type", "object", "event", "kind")
