"""Patches in the envelope of `apply_patch` (V4A), as codex and its relatives take them.

Grammar: https://github.com/openai/codex, `codex-rs/apply-patch`. A chunk has no line numbers: its
old lines are sought from where the chunk before it ended, after the line that `@@` names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness_adapters.synthesis.replay.edits import seek

_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_HEADER = re.compile(r"\*\*\* (Add|Delete|Update) File: (.+)")
_MOVE = "*** Move to: "
_EOF = "*** End of File"


@dataclass(slots=True)
class Chunk:
    """Lines that change together."""

    anchors: list[str] = field(default_factory=list)
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    at_end: bool = False


@dataclass(slots=True)
class FilePatch:
    """What a patch does to one file: `verb` is Add, Delete or Update."""

    verb: str
    path: str
    move_to: str = ""
    chunks: list[Chunk] = field(default_factory=list)
    added: list[str] = field(default_factory=list)


def parse_patch(text: str) -> list[FilePatch]:
    """The files of the patch inside a text (a call's argument or a command line), in order."""
    start = text.find(_BEGIN)
    if start < 0:
        return []
    found: list[FilePatch] = []
    for line in text[start:].splitlines()[1:]:
        if line.strip() == _END:
            break
        header = _HEADER.match(line.strip() if line.startswith("***") else "")
        if header:
            found.append(FilePatch(header[1], header[2].strip()))
        elif found:
            _take(found[-1], line)
    for patch in found:
        patch.chunks = [chunk for chunk in patch.chunks if chunk.old or chunk.new]
    return found


def _take(patch: FilePatch, line: str) -> None:
    if patch.verb == "Add":
        patch.added.append(line[1:] if line.startswith("+") else line)
        return
    if line.startswith(_MOVE):
        patch.move_to = line[len(_MOVE) :].strip()
        return
    if line.strip() == _EOF:
        if patch.chunks:
            patch.chunks[-1].at_end = True
        return
    last = patch.chunks[-1] if patch.chunks else None
    if line.startswith("@@"):
        anchor = line[2:].strip()
        if last is None or last.old or last.new:
            patch.chunks.append(Chunk())
        if anchor:
            patch.chunks[-1].anchors.append(anchor)
        return
    if last is None:
        last = Chunk()
        patch.chunks.append(last)
    mark, rest = line[:1], line[1:]
    if mark == "+":
        last.new.append(rest)
    elif mark == "-":
        last.old.append(rest)
    elif mark in (" ", ""):
        last.old.append(rest)
        last.new.append(rest)


def apply_chunks(text: str, chunks: list[Chunk]) -> tuple[str, bool] | None:
    """Text after an update, and whether a match was tolerant; None when a chunk isn't found.

    The result ends with a line end, as the tool writes it.
    """
    crlf = "\r\n" in text
    lines = text.replace("\r\n", "\n").split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    tolerant = False
    position = 0
    for chunk in chunks:
        for anchor in chunk.anchors:
            at = seek(lines, [anchor], position)
            if at is None:
                return None
            position = at + 1
        if not chunk.old:
            place = len(lines) if not chunk.anchors else position
            lines[place:place] = chunk.new
            position = place + len(chunk.new)
            continue
        at = seek(lines, chunk.old, position, end=chunk.at_end)
        old, new = chunk.old, chunk.new
        if at is None and old[-1] == "":
            old, new = old[:-1], new[:-1] if new and new[-1] == "" else new
            at = seek(lines, old, position, end=chunk.at_end)
        if at is None:
            return None
        tolerant = tolerant or lines[at : at + len(old)] != old
        lines[at : at + len(old)] = new
        position = at + len(new)
    result = "\n".join(lines) + "\n" if lines else ""
    return (result.replace("\n", "\r\n") if crlf else result), tolerant
