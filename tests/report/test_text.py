from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.report.text import shortened, visible


def test_escape_sequences_are_shown_not_obeyed() -> None:
    assert visible("\x1b[31mred\x07\x9b1m") == "\\x1b[31mred\\x07\\x9b1m"
    assert visible("a\u202eb\u200bc\ufeff") == "a\\u202eb\\u200bc\\ufeff"
    assert visible("\ud800 \U000e0041") == "\\ud800 \\U000e0041"


def test_ordinary_text_is_untouched() -> None:
    text = "def f():\n\treturn 'naïve — 日本 ✓'\n"
    assert visible(text) == text
    assert visible("a\r\nb\rc") == "a\nb\\x0dc"


@given(st.text())
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = visible(text)
    assert all(c.isprintable() or c in "\n\t" or c.isspace() for c in shown)
    assert visible(shown) == shown
    shown.encode("utf-8")


def test_shortened_keeps_both_ends_and_says_how_much_is_gone() -> None:
    text = "a" * 500 + "b" * 500
    short = shortened(text, 90)
    assert short.startswith("a" * 60)
    assert short.endswith("b" * 30)
    assert "910 characters left out" in short
    assert shortened("abc", 3) == "abc"
