"""Joining paths as pathlib and os.path do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import EITHER, choices
from harness_adapters.guard.effects.python.values import (
    PathValue,
    Value,
    either,
    text_of,
)

if TYPE_CHECKING:
    pass


def join_paths(*parts: Value) -> PathValue:
    """Paths joined as pathlib and os.path.join do: an absolute one starts anew."""
    made = ""
    for part in parts:
        text = text_of(part)
        if EITHER in text or EITHER in made:
            return PathValue(
                text_of(either([_joined_text(a, b) for a in choices(made) for b in choices(text)]))
            )
        made = _joined_text(made, text)
    return PathValue(made)


def _joined_text(made: str, text: str) -> str:
    if text.startswith("/") or not made:
        return text
    return made.rstrip("/") + "/" + text
