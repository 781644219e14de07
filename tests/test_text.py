from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.text import visible


def test_escape_sequences_are_shown_not_obeyed() -> None:
    assert visible("\x1b[31mred\x07\x9b1m") == "\\x1b[31mred\\x07\\x9b1m"
    assert visible("a\u202eb\u200bc\ufeff") == "a\\u202eb\\u200bc\\ufeff"
    assert visible("\ud800 \U000e0041") == "\\ud800 \\U000e0041"


def test_ordinary_text_is_untouched() -> None:
    text = "def f():\n\treturn 'naïve — 日本 ✓'\n"
    assert visible(text) == text
    assert visible("a\r\nb\rc") == "a\nb\\x0dc"


def test_one_line_is_one_line() -> None:
    assert visible("a\tb\r\nc — ✓", one_line=True) == "a\\tb\\nc — ✓"


@given(st.text(), st.booleans())
def test_nothing_that_acts_is_left(text: str, one_line: bool) -> None:
    shown = visible(text, one_line=one_line)
    kept = "" if one_line else "\n\t"
    assert all(c.isprintable() or c in kept or (c.isspace() and c not in "\n\t") for c in shown)
    assert not (one_line and len(shown.splitlines()) > 1)
    assert visible(shown, one_line=one_line) == shown
    shown.encode("utf-8")
