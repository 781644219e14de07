"""Calls as agents mend them: hermes closes brackets and guesses names before it runs a call."""

from __future__ import annotations

import json
import re
from typing import Any

from harness_adapters.guard.effects.holes import RESERVED

_CLOSERS = {"{": "}", "[": "]"}


def read_arguments(text: str) -> dict[str, Any] | None:
    """The JSON object that arguments are; None where they are something else.

    A key that stands twice makes it something else, since readers differ on which one counts.
    """
    try:
        value = json.loads(text or "{}", object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


def repaired(text: str) -> list[dict[str, Any]]:
    """What an agent may make of broken arguments (hermes 0.19, `agent/tool_calls`)."""
    found: list[dict[str, Any]] = []
    for candidate in _candidates(text[: 1 << 18]):
        try:
            value = json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, str):
            value = read_arguments(value)
        if isinstance(value, dict) and value not in found:
            found.append(value)
    return found


def _candidates(text: str) -> list[str]:
    stripped = re.sub(r"^```\w*\s*|\s*```$", "", text.strip())
    without_commas = re.sub(r",\s*([}\]])", r"\1", stripped)
    closed = _closed(without_commas)
    start = stripped.find("{")
    trimmed = without_commas
    extra = []
    while trimmed and trimmed[-1] in "}]":
        trimmed = trimmed[:-1].rstrip()
        extra.append(trimmed)
    quotes = re.sub(r"(?<=[{,:\[\s])'|'(?=[},:\]\s])", '"', stripped)
    candidates = [text, stripped, without_commas, closed, *extra[:4], quotes, _closed(quotes)]
    if start > 0:
        candidates += [stripped[start:], _closed(stripped[start:])]
    return list(dict.fromkeys(candidates))


def _closed(text: str) -> str:
    """The text with the quotes and brackets closed that are still open."""
    stack: list[str] = []
    in_string = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\" and in_string:
            escaped = True
        elif char == '"':
            in_string = not in_string
        elif not in_string and char in _CLOSERS:
            stack.append(_CLOSERS[char])
        elif not in_string and stack and char == stack[-1]:
            stack.pop()
    end = ('\\"' if escaped else '"') if in_string else ""
    return re.sub(r",\s*$", "", text + end) + "".join(reversed(stack))


def holds_reserved(value: Any) -> bool:
    """Whether some text in it holds a code point that the analysis keeps for itself."""
    if isinstance(value, str):
        return not value.isascii() and RESERVED.search(value) is not None
    if isinstance(value, dict):
        return any(holds_reserved(k) or holds_reserved(v) for k, v in value.items())
    if isinstance(value, list):
        return any(map(holds_reserved, value))
    return False
