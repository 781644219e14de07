"""Replacing text as editing tools do: exactly, else tolerantly in the order that agents try.

Tolerant matching compares whole lines: with trailing white space ignored, then all white space at
both ends, then typographic characters as plain ones (codex's `seek_sequence`, pi's fuzzy match).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2009\u202f\u3000", " "),
    }
)


@dataclass(frozen=True, slots=True)
class Edited:
    """Text after an edit; `tolerant` when its old text was not there to the letter."""

    text: str
    tolerant: bool = False


def replace(text: str, old: str, new: str, *, everywhere: bool = False) -> Edited | None:
    """Replace the first (or every) occurrence; None when there is none, however read."""
    if old == new:
        return Edited(text)
    if not old:
        return Edited(new) if not text else None
    if old in text:
        return Edited(text.replace(old, new) if everywhere else text.replace(old, new, 1))
    if "\r\n" in text and "\r" not in old:
        # Tools show files with plain line ends and write them back with the file's own.
        inner = replace(
            text.replace("\r\n", "\n"), old, new.replace("\r\n", "\n"), everywhere=everywhere
        )
        return Edited(inner.text.replace("\n", "\r\n"), inner.tolerant) if inner else None
    return _by_lines(text, old, new)


def _by_lines(text: str, old: str, new: str) -> Edited | None:
    lines = text.split("\n")
    wanted = old.removesuffix("\n").split("\n")
    at = seek(lines, wanted, 0, exact=False)
    if at is None:
        return None
    ends = old.endswith("\n")
    replacement = new.removesuffix("\n") if ends else new
    put = replacement.split("\n") if replacement or not ends else []
    return Edited("\n".join([*lines[:at], *put, *lines[at + len(wanted) :]]), tolerant=True)


def seek(
    lines: Sequence[str],
    wanted: Sequence[str],
    start: int,
    *,
    exact: bool = True,
    end: bool = False,
) -> int | None:
    """Where `wanted` stands in `lines` from `start` on, by ever more tolerant comparison.

    With `end` the last possible place is tried first. `exact=False` skips the exact comparison.
    """
    if not wanted:
        return start
    last = len(lines) - len(wanted)
    if last < start:
        return None
    places = [last, *range(start, last)] if end else range(start, last + 1)
    comparisons = _COMPARISONS if exact else _COMPARISONS[1:]
    for form in comparisons:
        shaped = [form(line) for line in lines]
        target = [form(line) for line in wanted]
        for place in places:
            if shaped[place] == target[0] and shaped[place : place + len(target)] == target:
                return place
    return None


def _as_is(line: str) -> str:
    return line


def _without_end(line: str) -> str:
    return line.rstrip()


def _without_ends(line: str) -> str:
    return line.strip()


def _plain(line: str) -> str:
    return unicodedata.normalize("NFKC", line.translate(_PLAIN)).strip()


_COMPARISONS: tuple[Callable[[str], str], ...] = (_as_is, _without_end, _without_ends, _plain)
