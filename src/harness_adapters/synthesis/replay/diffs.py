"""Unified diffs: parsing, applying, undoing; and the lines that a diff alone gives away."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_END = "\\ No newline at end of file"


@dataclass(slots=True)
class Hunk:
    """One hunk; starts are 1-based line numbers, 0 for an empty side."""

    old_start: int
    new_start: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    old_open: bool = False
    """The old side's last line has no end."""
    new_open: bool = False

    def reversed(self) -> Hunk:
        """The hunk that undoes this one."""
        return Hunk(
            self.new_start, self.old_start, self.new, self.old, self.new_open, self.old_open
        )


@dataclass(slots=True)
class FileDiff:
    """The part of a diff about one file; empty paths when it has no header."""

    old_path: str = ""
    new_path: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def parse_diff(text: str) -> list[FileDiff]:
    """The files of a unified diff, git's or plain; a diff without headers is one file."""
    files: list[FileDiff] = []
    hunk: Hunk | None = None
    left = (0, 0)
    mark = ""
    for line in text.split("\n"):
        if line.startswith(_NO_END[:12]) and hunk is not None:
            hunk.old_open = hunk.old_open or mark in " -"
            hunk.new_open = hunk.new_open or mark in " +"
            continue
        if hunk is not None and left != (0, 0) and (line[:1] or " ") in " +-":
            mark, rest = line[:1] or " ", line[1:]
            old, new = int(mark in " -"), int(mark in " +")
            left = (left[0] - old, left[1] - new)
            hunk.old += [rest] * old
            hunk.new += [rest] * new
            continue
        if line.startswith("--- "):
            files.append(FileDiff(old_path=_path(line[4:])))
            hunk = None
        elif line.startswith("+++ ") and files:
            files[-1].new_path = _path(line[4:])
        elif found := _HUNK.match(line):
            if not files:
                files.append(FileDiff())
            hunk = Hunk(int(found[1]), int(found[3]))
            left = (int(found[2] or 1), int(found[4] or 1))
            files[-1].hunks.append(hunk)
        else:
            left = (0, 0)
    return files


def _path(text: str) -> str:
    name = text.split("\t")[0].strip()
    if name == "/dev/null":
        return ""
    return name[2:] if name.startswith(("a/", "b/")) else name


def apply_hunks(text: str, hunks: list[Hunk]) -> str | None:
    """Text after the hunks, or None when one doesn't fit; shifted ones are sought nearby."""
    crlf = "\r\n" in text
    lines = text.replace("\r\n", "\n").split("\n")
    closed = lines[-1] == ""
    if closed:
        lines.pop()
    shift = 0
    for hunk in hunks:
        start = hunk.old_start + shift - (1 if hunk.old else 0)
        at = _near(lines, hunk.old, start)
        if at is None:
            return None
        touches_end = at + len(hunk.old) == len(lines)
        lines[at : at + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old) + (at - start)
        if touches_end and hunk.new:
            closed = not hunk.new_open if hunk.old_open or hunk.new_open else closed or not hunk.old
    result = "\n".join(lines) + ("\n" if closed and lines else "")
    return result.replace("\n", "\r\n") if crlf else result


def undo_hunks(text: str, hunks: list[Hunk]) -> str | None:
    """Text before the hunks, from the text after them."""
    return apply_hunks(text, [hunk.reversed() for hunk in hunks])


def _near(lines: list[str], wanted: list[str], start: int) -> int | None:
    if not wanted:
        return min(max(start, 0), len(lines))
    last = len(lines) - len(wanted)
    for distance in range(max(start, last - start, 0) + 1):
        for place in {start - distance, start + distance}:
            if 0 <= place <= last and lines[place : place + len(wanted)] == wanted:
                return place
    return None


def new_lines(hunks: list[Hunk]) -> dict[int, str]:
    """Lines of the new side that a diff shows, by number."""
    known: dict[int, str] = {}
    for hunk in hunks:
        known.update(enumerate(hunk.new, hunk.new_start))
    return known


def whole_new_file(hunks: list[Hunk]) -> str | None:
    """The new text when a diff shows all of it: a file made from nothing."""
    if len(hunks) == 1 and hunks[0].old_start == 0 and not hunks[0].old:
        [hunk] = hunks
        return "\n".join(hunk.new) + ("" if hunk.new_open or not hunk.new else "\n")
    return None
