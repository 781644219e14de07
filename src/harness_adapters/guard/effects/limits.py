"""What may be worked out without asking for much time or memory.

Patterns and sizes come from the call that is judged, which may mean to stall the guard.
"""

from __future__ import annotations

import re

from harness_adapters.guard.effects.holes import OPAQUE

MAX_TEXT = 1 << 20
_MAX_STEPS = 10_000_000
_MAX_MADE = 1 << 24
_REPEATED_GROUP = re.compile(r"\)\s*[*+{?]|\\\d|\(\?")


def quick_pattern(pattern: str, length: int) -> bool:
    """Whether a regular expression surely ends soon on a text of `length` characters.

    Python's engine backtracks: no repeated groups, no back references, few repetitions.
    """
    if len(pattern) > 400 or _REPEATED_GROUP.search(pattern):
        return False
    repeats = len(re.findall(r"[*+{?]", pattern))
    return bool(max(length, 1) ** repeats <= _MAX_STEPS)


def capped(text: str) -> str:
    """The text, or OPAQUE where it has grown beyond what is worth knowing."""
    return text if len(text) <= MAX_TEXT else OPAQUE


def small_product(owner: object, *others: object) -> bool:
    """Whether an operation that may repeat one text for each part of another stays small.

    A number among the others counts as itself: it may be a width or a length.
    """
    sizes = [
        len(each) if hasattr(each, "__len__") else abs(each) if isinstance(each, int) else 1
        for each in others
    ]
    inner = [
        len(part)
        for each in others
        if isinstance(each, (list, tuple))
        for part in each
        if hasattr(part, "__len__")
    ]
    total = len(owner) if hasattr(owner, "__len__") else 1
    return max(total, 1) * max([*sizes, *inner, 1]) <= _MAX_MADE
