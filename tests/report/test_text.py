from harness_adapters.report.text import shortened


def test_shortened_keeps_both_ends_and_says_how_much_is_gone() -> None:
    text = "a" * 500 + "b" * 500
    short = shortened(text, 90)
    assert short.startswith("a" * 60)
    assert short.endswith("b" * 30)
    assert "910 characters left out" in short
    assert shortened("abc", 3) == "abc"
