"""Text of which parts are unknown, as plain `str` with noncharacters of Unicode for the holes.

A value such as `data/` + ANY is all that is known of `data/$(date +%F)`: concatenating, splitting
and normalising work on it as on any other string. The code points U+FDD0..U+FDEF are never
characters (Unicode 16, 23.7), and calls that hold one are refused before they get here.
"""

from __future__ import annotations

import re
from functools import lru_cache

ANY = "\ufdd0"
"""Any text, slashes included: data that only the run knows (file contents, output, arguments)."""
OPAQUE = "\ufdd1"
"""Any text, computed from what the call itself holds, in a way that was not worked out."""
STAR = "\ufdd2"
"""`*` of a shell's glob: any text within one path component, but no leading dot."""
ALL = "\ufdd6"
"""`*` of other programs, which takes a leading dot, too."""
ONE = "\ufdd3"
"""`?` of a glob."""
DIGITS = "\ufddd"
"""A number that only the run knows: of a line, a count, the value of an arithmetic expression."""
SET = "\ufdd4"
"""`[` of a glob; the set ends at SET_END."""
SET_END = "\ufdd5"
LITERAL = "\ufdd8"
"""Before a character of a shell word that is quoted."""
SPLIT = "\ufdd9"
"""Where an unquoted expansion is split into fields."""
EITHER = "\ufdda"
"""Opens alternatives, which OR separates and END closes."""
OR = "\ufddb"
END = "\ufddc"

RESERVED = re.compile("[\ufdd0-\ufdef]")
_UNBOUNDED = re.compile(f"[{ANY}{OPAQUE}]")
_WRITTEN = {ord(STAR): "*", ord(ALL): "*", ord(ONE): "?", ord(SET): "[", ord(SET_END): "]"}
MAX_ALTERNATIVES = 256
MAX_TOGETHER = 16_384
"""Characters of all alternatives of one text; beyond, and beyond their number, it is OPAQUE."""


def known(text: str) -> bool:
    """Whether the text has no hole."""
    return text.isascii() or RESERVED.search(text) is None


def degraded(text: str) -> str:
    """What a filter that isn't modelled makes of `text`.

    Data stays data. A text that the call spells out, or that holds an absolute path, becomes
    OPAQUE: otherwise any filter would launder a path.
    """
    if not text:
        return ""
    if known(text) or OPAQUE in text:
        return OPAQUE
    return OPAQUE if "/" in text else ANY


def from_glob(pattern: str) -> str:
    """A glob of a tool (`*`, `?`, `[…]`, `**`) as text with holes."""
    text = pattern.replace("**/", ANY + "/").replace("**", ANY)
    text = text.replace("*", ALL).replace("?", ONE)
    return re.sub(r"\[([^\]/]+)\]", rf"{SET}\1{SET_END}", text)


def as_written(text: str) -> str:
    """Globs as they were written, where a program takes them for something else."""
    return text.translate(_WRITTEN)


def alternatives(values: list[str]) -> str:
    """One text that stands for any of `values`."""
    unique = list(dict.fromkeys(values))
    if not unique:
        return ""
    if len(unique) == 1:
        return unique[0]
    if len(unique) > MAX_ALTERNATIVES or sum(map(len, unique)) > MAX_TOGETHER:
        return OPAQUE
    return EITHER + OR.join(unique) + END


def choices(text: str) -> list[str]:
    """The texts that `alternatives` made one of; OPAQUE where they are too many."""
    if EITHER not in text:
        return [text]
    found = [text]
    while any(EITHER in each for each in found):
        grown: list[str] = []
        for each in found:
            end = each.find(END)
            start = each.rfind(EITHER, 0, end) if end >= 0 else -1
            if start < 0:
                grown.append(each.replace(EITHER, "").replace(OR, "").replace(END, ""))
                continue
            head, tail = each[:start], each[end + 1 :]
            grown += [head + middle + tail for middle in each[start + 1 : end].split(OR)]
        found = list(dict.fromkeys(grown))
        if len(found) > MAX_ALTERNATIVES:
            return [OPAQUE]
    return found


@lru_cache(maxsize=4096)
def _segment(pattern: str) -> re.Pattern[str]:
    """A component with holes as a regular expression."""
    out, index = [], 0
    while index < len(pattern):
        char = pattern[index]
        if char in (STAR, ALL, ANY, OPAQUE):
            out.append(".*")
        elif char == ONE:
            out.append(".")
        elif char == DIGITS:
            out.append(r"-?\d+")
        elif char == SET:
            end = pattern.find(SET_END, index)
            body = pattern[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append("[" + ("^" + body[1:] if body[:1] in "!^" and body[1:] else body) + "]")
            index = end
        else:
            out.append(re.escape(char))
        index += 1
    try:
        return re.compile("".join(out), re.DOTALL)
    except re.error:
        return re.compile(".*", re.DOTALL)


@lru_cache(maxsize=4096)
def components_meet(one: str, other: str) -> bool:
    """Whether a name may fit `one`, a call's, and `other`; with holes in both it errs to True."""
    if other[:1] == "." and one[:1] in (STAR, ONE, SET):
        return False
    if known(one):
        return one == other if known(other) else _segment(other).fullmatch(one) is not None
    if known(other):
        return _segment(one).fullmatch(other) is not None
    heads = RESERVED.split(one)[0], RESERVED.split(other)[0]
    tails = RESERVED.split(one)[-1], RESERVED.split(other)[-1]
    return (heads[0].startswith(heads[1]) or heads[1].startswith(heads[0])) and (
        tails[0].endswith(tails[1]) or tails[1].endswith(tails[0])
    )


@lru_cache(maxsize=16384)
def paths_meet(path: str, pattern: str) -> bool:
    """Whether some path fits both; a component that is ANY alone fits any number of them."""
    if path == pattern:
        return True
    for spelled in _spread(path):
        if _meet(tuple(spelled.split("/")), tuple(pattern.split("/"))):
            return True
    return False


def _spread(path: str) -> list[str]:
    """A component that holds ANY among other text may span several."""
    if not _UNBOUNDED.search(path):
        return [path]
    parts = path.replace(OPAQUE, ANY).split("/")
    if all(ANY not in part or part == ANY for part in parts):
        return ["/".join(parts)]
    within = [part if part == ANY else part.replace(ANY, ALL) for part in parts]
    across: list[str] = []
    for part in parts:
        if part != ANY and ANY in part:
            pieces = part.split(ANY)
            across += [pieces[0] + ALL, ANY, ALL + pieces[-1]]
        else:
            across.append(part)
    return ["/".join(within), "/".join(across)]


@lru_cache(maxsize=16384)
def _meet(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    if not one or not other:
        rest = one or other
        return all(part == ANY for part in rest)
    if one[0] == ANY:
        return _meet(one[1:], other) or _meet(one, other[1:])
    if other[0] == ANY:
        return _meet(one, other[1:]) or _meet(one[1:], other)
    return components_meet(one[0], other[0]) and _meet(one[1:], other[1:])
