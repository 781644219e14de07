"""Exit codes that harnesses write into the text of a command's result.

Each pattern stands at the place where its harness writes it, so that a program which prints the
same words in the middle of its output decides nothing.
"""

from __future__ import annotations

import re
from typing import Any

from harness_adapters.synthesis.traces import values

_HEAD = 400
_TAIL = 400
_AT_START = re.compile(
    r"\A\s*(?:"
    r"(?:Error: )?Exit code:? (?P<a>-?\d{1,10})\b"  # Claude Code; codex
    r"|<returncode>(?P<b>-?\d{1,10})</returncode>"  # mini-swe-agent
    r"|(?:Chunk ID: \S+\n)?(?:Wall time: [^\n]*\n)?Process exited with code (?P<c>-?\d{1,10})\b"
    r"|Command failed with exit code (?P<d>-?\d{1,10})\b"
    r")"
)
_AT_END = re.compile(
    r"(?:"
    r"Command exited with code (?P<a>-?\d{1,10})"  # pi
    r"|<exited with exit code (?P<b>-?\d{1,10})>"  # Copilot CLI
    r"|<shellId: [^>]{0,80} completed with exit code (?P<e>-?\d{1,10})>"  # Copilot CLI
    r"|\[The command completed with exit code (?P<c>-?\d{1,10})\.?\](?:\n\[[^\n]*\])*"  # OpenHands
    r"|\[Command finished with exit code (?P<d>-?\d{1,10})\]"
    r")\s*\Z"
)
_KEYS = ("exit_code", "exitCode", "returncode", "return_code", "exit")


def stated(result: str) -> int | None:
    """The exit code that a result's text states in a form of a known harness, else None."""
    found = _AT_START.search(result[:_HEAD]) or _AT_END.search(result[-_TAIL:])
    if found:
        return int(next(group for group in found.groups() if group is not None))
    stripped = result.lstrip()
    if stripped.startswith("{") and len(result) < 4_000_000 and any(k in result for k in _KEYS):
        return in_object(values.parse(stripped))
    return None


def in_object(value: Any) -> int | None:
    """The exit code in a result that is an object, or in its `metadata`."""
    found = values.mapping(value)
    for place in (found, values.mapping(found.get("metadata"))):
        for key in _KEYS:
            code = values.integer(place.get(key))
            if code is not None:
                return code
    return None
