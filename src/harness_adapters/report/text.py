"""Session text on a page: harmless to look at (see `harness_adapters.text`), and not too long."""

from __future__ import annotations

from harness_adapters.text import visible

__all__ = ["shortened", "visible"]


def shortened(text: str, limit: int) -> str:
    """At most about `limit` characters: the start and the end, and how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}\n… {left_out:,} characters left out …\n{text[-tail:]}"
