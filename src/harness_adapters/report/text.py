"""Making hostile session text harmless to look at: models and tools write what they like."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that act on a terminal or a page instead of showing: control (ANSI escapes),
format (direction overrides, zero-width), surrogates, private use, unassigned, separators."""


def visible(text: str) -> str:
    """The same text with everything that acts instead of showing written as an escape.

    Line ends become `\\n`; tabs stay; `\\x1b` (ESC), direction overrides and the like become the
    four or more characters that Python would write for them.
    """
    text = text.replace("\r\n", "\n")
    if text.isascii() and text.translate(_PRINTABLE_ASCII) == "":
        return text
    return "".join(
        c if c in _KEPT or unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text
    )


_PRINTABLE_ASCII = {ord(c): None for c in [*map(chr, range(32, 127)), *_KEPT]}


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shortened(text: str, limit: int) -> str:
    """At most about `limit` characters: the start and the end, and how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}\n… {left_out:,} characters left out …\n{text[-tail:]}"
