"""Making text from elsewhere harmless to look at: models, tools, tasks and servers write what they
like."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that act on a terminal or a page instead of showing: control (ANSI escapes),
format (direction overrides, zero-width), surrogates, private use, unassigned, separators."""

_PRINTABLE_ASCII = {ord(c): None for c in [*map(chr, range(32, 127)), *_KEPT]}


def visible(text: str, *, one_line: bool = False) -> str:
    """The same text with everything that acts instead of showing written as an escape.

    Line ends become `\\n`; tabs stay; `\\x1b` (ESC), direction overrides and the like become the
    four or more characters that Python would write for them. With `one_line`, line ends and tabs
    are written as escapes, too. Markup of Rich or HTML is text like any other here: whoever prints
    it escapes that.
    """
    text = text.replace("\r\n", "\n")
    if not text.isascii() or text.translate(_PRINTABLE_ASCII) != "":
        text = "".join(
            c if c in _KEPT or unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text
        )
    return text.replace("\n", "\\n").replace("\t", "\\t") if one_line else text


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
