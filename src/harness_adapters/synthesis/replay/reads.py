"""File content out of what a read shows, in the forms of the known agents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.session import ToolCall

_NUMBERED = re.compile(r"^\s*(\d+)(?:→|\t|\| ?|: ?|[a-z]{2}\|)(.*)$")
_TAGGED = re.compile(r"<(content|file)>\n(.*?)\n?</\1>", re.DOTALL)
_NOTICE = re.compile(
    r"\n*(?:\[(?:Showing lines|\d+ more lines)[^\]]*\]|\((?:End of file|File has more lines)[^)]*\)"
    r"|<system-reminder>.*?</system-reminder>|\[Output truncated[^\]]*\])\s*$",
    re.DOTALL,
)
_WHOLE_NOTICE = re.compile(r"\(End of file[^)]*\)\s*$")
_RANGES = ("offset", "limit", "view_range", "start_line", "end_line", "start", "end", "lines")
_CAT_N = "Here's the result of running `cat -n`"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a read shows: the whole text, or lines by number.

    `final` tells whether the file's last line end was seen; without it, one is assumed.
    """

    text: str | None = None
    final: bool = False
    lines: dict[int, str] = field(default_factory=dict)


def shown_by(call: ToolCall) -> Shown | None:
    """What a successful read shows of its file; None when that can't be told."""
    result = call.result
    if result is None or result.failed or result.running or result.images:
        return None
    text = result.text
    ranged = any(call.arguments.get(key) not in (None, "", [], 0, -1) for key in _RANGES)
    cut = result.truncated
    inner = values.mapping(values.parse(text)) if text.startswith("{") else {}
    if isinstance(inner.get("content"), str):
        text = inner["content"]
        total = values.integer(inner.get("total_lines"))
        cut = cut or inner.get("truncated") is True
        shown = _numbered(text)
        if shown is not None and total is not None and not ranged and not cut:
            return _from_one(shown, ended=len(shown) > total)
        return Shown(lines=shown) if shown else None
    if text.startswith(_CAT_N):
        text = text.split("\n", 1)[1] if "\n" in text else ""
    tagged = _TAGGED.search(text)
    if tagged:
        text = tagged[2]
    whole = not ranged and not cut
    while found := _NOTICE.search(text):
        whole = whole and (bool(_WHOLE_NOTICE.search(found[0])) or "<system-rem" in found[0])
        text = text[: found.start()]
    numbered = _numbered(text)
    if numbered is not None:
        return _from_one(numbered, ended=False) if whole else Shown(lines=numbered)
    if tagged or not whole:
        return None
    return Shown(text=text, final=True)


def _numbered(text: str) -> dict[int, str] | None:
    """Lines by number when every line carries one and they count up by one."""
    found: dict[int, str] = {}
    lines = text.rstrip("\n").split("\n")
    if not text:
        return None
    for line in lines:
        match = _NUMBERED.match(line)
        if match is None:
            return None
        number = int(match[1])
        if found and number != next(reversed(found)) + 1:
            return None
        found[number] = match[2].removesuffix("\r")
    return found


def _from_one(lines: dict[int, str], *, ended: bool) -> Shown:
    if 1 not in lines:
        return Shown(lines=lines)
    texts = list(lines.values())
    if len(texts) > 1 and texts[-1] == "":
        return Shown(text="\n".join(texts), final=True)
    return Shown(text="\n".join(texts) + "\n", final=ended)
