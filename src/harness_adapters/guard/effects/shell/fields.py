"""Marked text of a word, and the fields that it becomes: braces, splitting, globs, quotes."""

from __future__ import annotations

import re

from harness_adapters.guard.effects.holes import (
    LITERAL,
    ONE,
    OPAQUE,
    SET,
    SET_END,
    SPLIT,
    STAR,
    choices,
    known,
)

_SPECIAL = re.compile(r"[*?\[\]{},~\\]")


_PLAIN = re.compile(r"[^*?\[\]{}~\\\ufdd0-\ufdef]*")


_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")


_RANGE = re.compile(r"(-?\w+)\.\.(-?\w+)(?:\.\.(-?\d+))?")


_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)


_ANSI_NAMES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f"}


def unescaped(text: str) -> str:
    r"""`$'…'`, and the escapes of `echo -e` and `printf`: `\143`, `\x41`, `\n`."""

    def one(match: re.Match[str]) -> str:
        hexa, four, eight, octal, control, other = match.groups()
        if hexa or four or eight:
            code = int(hexa or four or eight, 16)
            return chr(code) if code < 0xFDD0 or 0xFDEF < code < 0x110000 else OPAQUE
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if control:
            return chr(ord(control.upper()) ^ 0x40)
        return _ANSI_NAMES.get(other, other if other in "\\'\"?" else "\\" + other)

    return _ANSI.sub(one, text) if "\\" in text else text


def quoted(text: str) -> str:
    """`text` with its special characters marked as quoted."""
    return _SPECIAL.sub(LITERAL + r"\g<0>", text)


def split(text: str, separators: str = " \t\n") -> str:
    """An unquoted expansion: `$IFS` separates fields, braces and tildes stay."""
    if separators != " \t\n" and known(separators):
        text = re.sub(f"[{re.escape(separators)}]+", SPLIT, text) if separators else text
        return re.sub(r"[{},~\\]", LITERAL + r"\g<0>", text)
    marked = re.sub(r"[{},~\\]", LITERAL + r"\g<0>", text)
    return re.sub(r"[ \t\n]+", SPLIT, marked)


def fields(marked: str) -> list[str]:
    """Expand braces, split, turn globs into holes, remove the marks."""
    if _PLAIN.fullmatch(marked):
        return [marked]
    found: list[str] = []
    for word in _braced(marked):
        for chosen in choices(word):
            if SPLIT in chosen:
                found += [_finished(part) for part in chosen.split(SPLIT) if part]
            else:
                found.append(_finished(chosen))
    return found


def _braced(word: str) -> list[str]:
    words = [word]
    if "{" not in word:
        return words
    for _ in range(40):
        grown: list[str] = []
        for each in words:
            match = next((m for m in _BRACES.finditer(each) if _is_open(each, m)), None)
            if match is None:
                grown.append(each)
                continue
            body = match.group()[1:-1]
            for item in _items(body):
                grown.append(each[: match.start()] + item + each[match.end() :])
        if grown == words:
            return words
        if len(grown) > 20_000:
            return [OPAQUE]
        words = grown
    return [OPAQUE]


def _is_open(word: str, match: re.Match[str]) -> bool:
    before = word[match.start() - 1 : match.start()]
    return before not in (LITERAL, "$")


def _items(body: str) -> list[str]:
    whole = _RANGE.fullmatch(body)
    if whole and "," not in body:
        first, last, step = whole.groups()
        try:
            low, high = int(first), int(last)
            by = abs(int(step or 1)) or 1
            if abs(high - low) // by > 20_000:
                return [OPAQUE]
            numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
            return [str(n) for n in numbers]
        except ValueError:
            if len(first) == len(last) == 1:
                a, b = ord(first), ord(last)
                return [chr(c) for c in (range(a, b + 1) if a <= b else range(a, b - 1, -1))]
    return re.split(rf"(?<!{LITERAL}),", body)


def _finished(word: str) -> str:
    out: list[str] = []
    index = 0
    while index < len(word):
        char = word[index]
        if char == LITERAL or char == "\\":
            index += 1
            out.append(word[index : index + 1])
        elif char == "*":
            out.append(STAR)
        elif char == "?":
            out.append(ONE)
        elif char == "[" and "]" in word[index + 2 :]:
            end = word.index("]", index + 2)
            out.append(SET + word[index + 1 : end].replace(LITERAL, "") + SET_END)
            index = end
        else:
            out.append(char)
        index += 1
    return "".join(out)
