"""Looking into JSON of others: every function takes anything, answers with the type asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

_TEXT_KEYS = ("text", "content", "output", "thinking", "reasoning", "value")
_IMAGE_TYPES = {"image", "image_url", "input_image", "inputImage", "screenshot"}


def text(value: Any) -> str:
    """The value when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def mapping(value: Any) -> dict[str, Any]:
    """The value when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """The value when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mappings(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list; other entries are passed over."""
    return (entry for entry in sequence(value) if isinstance(entry, dict))


def integer(value: Any) -> int | None:
    """The value when it is an integer (not a boolean), or a float that is one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value if isinstance(value, int) else None


def seconds(value: Any) -> float | None:
    """Unix seconds of an ISO 8601 text, or of seconds or milliseconds as a number or digits."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _iso(value)
    if isinstance(value, int | float) and 0 < value < 1e17:
        return float(value) / (1 if value < 1e11 else 1000 if value < 1e14 else 1e6)
    return None


def _iso(value: str) -> float | None:
    try:
        moment = datetime.fromisoformat(value.strip().replace("Z", "+00:00"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def content(value: Any) -> tuple[str, int]:
    """Text and number of images of a message's content: a string, a block or a list of blocks."""
    if isinstance(value, str):
        return value, 0
    parts: list[str] = []
    images = 0
    for block in value if isinstance(value, list) else [value]:
        if isinstance(block, str):
            parts.append(block)
        elif isinstance(block, dict):
            if text(block.get("type")) in _IMAGE_TYPES or (
                "image_url" in block and "text" not in block
            ):
                images += 1
                continue
            for key in _TEXT_KEYS:
                if isinstance(block.get(key), str):
                    parts.append(block[key])
                    break
                if isinstance(block.get(key), list):
                    inner, inner_images = content(block[key])
                    parts.append(inner)
                    images += inner_images
                    break
    return "\n".join(parts), images


def plain(value: Any) -> str:
    """A tool's answer as text: content as it is, anything else as JSON."""
    if value is None:
        return ""
    found, images = content(value)
    if found or images or isinstance(value, str):
        return found
    return json.dumps(value, ensure_ascii=False, default=str) if value != [] else ""


def arguments(value: Any) -> tuple[dict[str, Any], bool]:
    """A call's arguments as an object, and whether they were malformed.

    JSON text is parsed; text that is no JSON object becomes `{"input": text}`.
    """
    if isinstance(value, dict):
        return value, False
    if value is None or value == "":
        return {}, False
    if isinstance(value, str):
        parsed = parse(value)
        return (parsed, False) if isinstance(parsed, dict) else ({"input": value}, True)
    return {"input": value}, True


def parse(value: str | bytes) -> Any:
    """JSON, or None for whatever can't be read; never raises on bad input."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def embedded(value: Any) -> Any:
    """The value, parsed when it is a text that holds a JSON object or list."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        parsed = parse(value)
        return value if parsed is None else parsed
    return value
