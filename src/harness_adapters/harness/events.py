"""Reading what an agent printed: JSON events by line, the last line of an error."""

from __future__ import annotations

import json
from typing import Any


def json_lines(output: bytes) -> list[dict[str, Any]]:
    """Whole JSON objects by line; anything else is passed over."""
    events: list[dict[str, Any]] = []
    for line in output.split(b"\n"):
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def last_line(text: bytes) -> str:
    """The last line that isn't empty, at most 300 characters of it; else an empty string."""
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1].strip()[:300] if lines else ""
