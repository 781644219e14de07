"""File content out of what a read shows, in the forms of the known agents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.session import Result, ToolCall

_NUMBERED = re.compile(r"^(?:\d{5}\| |\s*\d+(?:→|\t|\||: |:$|[a-z]{2}\|))(?P<text>.*)$")
_NUMBER = re.compile(r"\s*(\d+)")
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


_SHELL_HEADER = re.compile(r"\A(?:Chunk ID: |Wall time: |Exit code: )[^\0]*?\nOutput:\n")
_CAT = re.compile(r"cat\s+(?:--\s+)?(?P<path>[\w./@+-]+|'[^']+'|\"[^\"$`]+\")")
_SED = re.compile(
    r"sed\s+-n\s+['\"]?(?P<first>\d+),(?P<last>\d+)p['\"]?\s+(?P<path>[\w./@+-]+|'[^']+')"
)


def shown_by_command(command: str, result: Result | None) -> tuple[str, Shown] | None:
    """The path and what a command that only shows a file shows of it."""
    if result is None or result.exit_code not in (0, None) or result.failed or result.truncated:
        return None
    line = command.strip()
    whole = _CAT.fullmatch(line)
    part = _SED.fullmatch(line)
    if whole is None and part is None:
        return None
    text = result.text
    inner = values.mapping(values.parse(text)) if text.startswith("{") else {}
    if isinstance(inner.get("output"), str) and "exit_code" in inner:
        text = inner["output"]
    text = _SHELL_HEADER.sub("", text)
    ended = text.endswith("\n")
    if whole is not None:
        return whole["path"].strip("'\""), Shown(text=text, final=ended)
    assert part is not None
    lines = text.removesuffix("\n").split("\n") if text else []
    first, last = int(part["first"]), int(part["last"])
    path = part["path"].strip("'")
    if first == 1 and len(lines) < last:
        return path, Shown(text=text, final=ended)
    return path, Shown(lines=dict(enumerate(lines, first)))


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
        number = int(_NUMBER.match(line)[1])  # type: ignore[index]
        if found and number != next(reversed(found)) + 1:
            return None
        found[number] = match["text"].removesuffix("\r")
    return found


def _from_one(lines: dict[int, str], *, ended: bool) -> Shown:
    if 1 not in lines:
        return Shown(lines=lines)
    texts = list(lines.values())
    if len(texts) > 1 and texts[-1] == "":
        return Shown(text="\n".join(texts), final=True)
    return Shown(text="\n".join(texts) + "\n", final=ended)
