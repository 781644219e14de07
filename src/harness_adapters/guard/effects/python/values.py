"""What an expression of Python may be: plain constants, and stand-ins for all else.

Strings with holes (`holes.py`) are strings here, too.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness_adapters.guard.effects.holes import ANY, OPAQUE, alternatives, known

Value: TypeAlias = Any
"""A Python constant, a list, tuple, dict or set of values, or one of the classes below."""

MAX_SIZE = 1 << 20
"""Of a string or list that is worked out; a longer one is not."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Some value. `dark`: made from constants of the program in a way that wasn't worked out."""

    dark: bool = False


DATA = Unknown()
DARK = Unknown(dark=True)


@dataclass(frozen=True, slots=True)
class Ref:
    """Something of a module, by its dotted name: `os.path.join`."""

    name: str


@dataclass(frozen=True, slots=True)
class PathValue:
    """A pathlib path."""

    text: str


@dataclass(frozen=True, slots=True)
class Handle:
    """An open file, or the output of a process: its text."""

    text: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Archive(Handle):
    """An open zip file: what is written into it are other files."""


@dataclass(frozen=True, slots=True)
class Template:
    """A `string.Template`."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Partial:
    """A function with the arguments that it has already."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Method:
    """An attribute of a value that is about to be called."""

    owner: Value
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function of the program, with the variables around it."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    env: dict[str, Value]
    owner: Value = None
    """The instance that it is bound to."""


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the program; also the class itself."""

    attributes: dict[str, Value] = field(default_factory=dict[str, Any])
    cls: Instance | None = None
    bases: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Alt:
    """Any of several values."""

    values: tuple[Value, ...]


def is_concrete(value: Value) -> bool:
    """Whether the value is wholly known and made of constants."""
    if isinstance(value, str):
        return known(value)
    if value is None or isinstance(value, (int, float, bytes, bytearray, complex, slice, range)):
        return True
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(is_concrete(item) for item in value)
    if isinstance(value, dict):
        return all(is_concrete(k) and is_concrete(v) for k, v in value.items())
    return False


def is_dark(value: Value) -> bool:
    """Whether something in it was computed from constants without being worked out."""
    if isinstance(value, Unknown):
        return value.dark
    if isinstance(value, str):
        return OPAQUE in value
    if isinstance(value, (list, tuple, set)):
        return any(is_dark(item) for item in value)
    if isinstance(value, Alt):
        return any(is_dark(item) for item in value.values)
    return False


def text_of(value: Value) -> str:
    """The value as text with holes."""
    if isinstance(value, str):
        return value
    if isinstance(value, (PathValue, Handle)):
        return value.text
    if isinstance(value, (bytes, bytearray)):
        return value.decode(errors="replace")
    if isinstance(value, Alt):
        return alternatives([text_of(item) for item in value.values])
    if isinstance(value, Unknown):
        return OPAQUE if value.dark else ANY
    if isinstance(value, Ref):
        return _CONSTANTS.get(value.name, ANY)
    if isinstance(value, (int, float)) or value is None:
        return str(value)
    return OPAQUE if is_dark(value) else ANY


_CONSTANTS = {
    "os.sep": "/",
    "os.path.sep": "/",
    "os.devnull": "/dev/null",
    "os.curdir": ".",
    "os.pardir": "..",
    "os.linesep": "\n",
    "os.pathsep": ":",
    "os.name": "posix",
    "sys.platform": "linux",
}


def either(values: list[Value]) -> Value:
    """One value that stands for any of them, never an Alt of Alts: those would grow with no end."""
    kept: list[Value] = []
    for value in (part for each in values for part in _parts(each)):
        if not any(value is other or _same(value, other) for other in kept):
            kept.append(value)
    if len(kept) == 1:
        return kept[0]
    if all(isinstance(value, str) for value in kept):
        return alternatives(kept)
    return Alt(tuple(kept[:64])) if len(kept) <= 64 else DARK


def _parts(value: Value) -> tuple[Value, ...]:
    return value.values if isinstance(value, Alt) else (value,)


def _same(one: Value, other: Value) -> bool:
    return type(one) is type(other) and isinstance(one, (str, int, bytes, Ref)) and one == other
