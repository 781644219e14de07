"""Plain data as JSON, by exact type; everything else crosses as the number of an object.

A subclass of `int` that equals everything is no `int` here, so nothing that the agent's code
overloads reaches a comparison of the test's.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from typing import Any

_AS_TEXT: dict[type, tuple[str, Callable[[Any], str], Callable[[str], Any]]] = {
    bytes: ("bytes", bytes.hex, bytes.fromhex),
    complex: ("complex", complex.__repr__, complex),
    decimal.Decimal: ("decimal", decimal.Decimal.__str__, decimal.Decimal),
    fractions.Fraction: ("fraction", fractions.Fraction.__str__, fractions.Fraction),
    datetime.datetime: (
        "datetime",
        datetime.datetime.isoformat,
        datetime.datetime.fromisoformat,
    ),
    datetime.date: ("date", datetime.date.isoformat, datetime.date.fromisoformat),
}
_FROM_TEXT = {name: made for name, _, made in _AS_TEXT.values()}
_MANY: dict[type, str] = {list: "list", tuple: "tuple", set: "set", frozenset: "frozenset"}
_MADE = {name: kind for kind, name in _MANY.items()}


def packed(value: Any, other: Callable[[Any], Any]) -> Any:
    """`value` as JSON; what is no plain data as `other` says."""
    kind = type(value)
    if value is None or kind in (bool, int, float, str):
        return value
    if kind in _MANY:
        return {_MANY[kind]: [packed(each, other) for each in value]}
    if kind is dict:
        return {"dict": [[packed(k, other), packed(v, other)] for k, v in value.items()]}
    if kind in _AS_TEXT:
        name, text, _ = _AS_TEXT[kind]
        return {name: text(value)}
    return {"object": other(value)}


def unpacked(value: Any, other: Callable[[Any], Any]) -> Any:
    """The value of `packed`'s JSON. Raises ValueError, TypeError or the like for anything else."""
    if not isinstance(value, dict):
        if isinstance(value, list):
            raise ValueError("a bare list")
        return value
    [(name, held)] = value.items()
    if name in _MADE:
        return _MADE[name](unpacked(each, other) for each in held)
    if name == "dict":
        return {unpacked(k, other): unpacked(v, other) for k, v in held}
    if name == "object":
        return other(held)
    return _FROM_TEXT[name](held)
