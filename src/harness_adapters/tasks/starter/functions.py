"""Small Python functions with a right body, a wrong body and inputs that tell them apart."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from harness_adapters.tasks.starter.family import NOUNS

_VERBS = ("get", "make", "find", "check", "read", "build", "add", "take", "give", "use")


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its text is built from these parts."""

    name: str
    parameters: str
    meaning: str
    """What it returns, as the end of the sentence `returns …`."""
    good: str
    bad: str
    calls: tuple[tuple[str, tuple[int | str, ...], int | str | bool], ...]
    """(name, arguments, expected) for the checker."""

    def source(self, *, broken: bool = False, documented: bool = True) -> list[str]:
        """Lines of the function."""
        lines = [f"def {self.name}({self.parameters}):"]
        if documented:
            lines.append(f'    """Return {self.meaning}."""')
        return [*lines, f"    return {self.bad if broken else self.good}"]


_ONE_NUMBER: tuple[tuple[str, str, str, Callable[[int, int], int | bool]], ...] = (
    ("x times {c}", "x * {c}", "x + {c}", lambda x, c: x * c),
    ("x plus {c}", "x + {c}", "x - {c}", lambda x, c: x + c),
    ("x minus {c}", "x - {c}", "x + {c}", lambda x, c: x - c),
    ("{c} minus x", "{c} - x", "x - {c}", lambda x, c: c - x),
    ("the remainder of x divided by {c}", "x % {c}", "x // {c}", lambda x, c: x % c),
    ("True if x is greater than {c}", "x > {c}", "x < {c}", lambda x, c: x > c),
    ("True if x is less than {c}", "x < {c}", "x > {c}", lambda x, c: x < c),
    ("True if x is equal to {c}", "x == {c}", "x != {c}", lambda x, c: x == c),
    ("the larger of x and {c}", "max(x, {c})", "min(x, {c})", lambda x, c: max(x, c)),
    ("the smaller of x and {c}", "min(x, {c})", "max(x, {c})", lambda x, c: min(x, c)),
)
_TWO_NUMBERS: tuple[tuple[str, str, str, Callable[[int, int, int], int | bool]], ...] = (
    ("a plus b plus {c}", "a + b + {c}", "a - b + {c}", lambda a, b, c: a + b + c),
    ("a times b plus {c}", "a * b + {c}", "a * b - {c}", lambda a, b, c: a * b + c),
    ("a minus b plus {c}", "a - b + {c}", "b - a + {c}", lambda a, b, c: a - b + c),
    ("{c} times the sum of a and b", "(a + b) * {c}", "(a + b) + {c}", lambda a, b, c: (a + b) * c),
    (
        "{c} plus the larger of a and b",
        "max(a, b) + {c}",
        "min(a, b) + {c}",
        lambda a, b, c: max(a, b) + c,
    ),
    (
        "True if a plus b is greater than {c}",
        "a + b > {c}",
        "a + b < {c}",
        lambda a, b, c: a + b > c,
    ),
)
_TEXT: tuple[tuple[str, str, str, Callable[[str, int, str], int | str | bool]], ...] = (
    ("the first {c} characters of s", "s[:{c}]", "s[{c}:]", lambda s, c, w: s[:c]),
    ("s without its first {c} characters", "s[{c}:]", "s[:{c}]", lambda s, c, w: s[c:]),
    ("the length of s plus {c}", "len(s) + {c}", "len(s) - {c}", lambda s, c, w: len(s) + c),
    ("s repeated {c} times", "s * {c}", "s + {c}", lambda s, c, w: s * c),
    ("the word {w} followed by s", "'{w}' + s", "s + '{w}'", lambda s, c, w: w + s),
    ("s followed by the word {w}", "s + '{w}'", "'{w}' + s", lambda s, c, w: s + w),
    ("True if {w} is in s", "'{w}' in s", "'{w}' not in s", lambda s, c, w: w in s),
)


def random_function(rng: random.Random, kinds: str = "number two text") -> Function:
    """A function of one of the kinds `number`, `two` (numbers), `text`."""
    name = f"{rng.choice(_VERBS)}_{rng.choice(NOUNS)}"
    kind = rng.choice(kinds.split())
    if kind == "number":
        meaning, good, bad, one = rng.choice(_ONE_NUMBER)
        constant = rng.randint(2, 60)
        inputs = (0, 1, constant - 1, constant, constant + 1, 77, -5)
        calls = tuple((name, (x,), one(x, constant)) for x in inputs)
        return Function(name, "x", *_fill((meaning, good, bad), constant), calls)
    if kind == "two":
        meaning, good, bad, two = rng.choice(_TWO_NUMBERS)
        constant = rng.randint(2, 60)
        pairs = ((0, 0), (1, 2), (9, 4), (constant, 3), (50, 60), (-7, 2))
        calls_two = tuple((name, (a, b), two(a, b, constant)) for a, b in pairs)
        return Function(name, "a, b", *_fill((meaning, good, bad), constant), calls_two)
    meaning, good, bad, text = rng.choice(_TEXT)
    constant, word = rng.randint(2, 5), rng.choice(NOUNS)
    texts = ("", "a", "winter", f"one {word} two", "stonebridge")
    calls_text = tuple((name, (s,), text(s, constant, word)) for s in texts)
    return Function(name, "s", *_fill((meaning, good, bad), constant, word), calls_text)


def _fill(texts: tuple[str, str, str], constant: int, word: str = "") -> tuple[str, str, str]:
    meaning, good, bad = (text.format(c=constant, w=word) for text in texts)
    return meaning, good, bad


def random_functions(
    rng: random.Random, count: int, kinds: str = "number two text"
) -> list[Function]:
    """Functions with different names and different bodies."""
    found: list[Function] = []
    while len(found) < count:
        one = random_function(rng, kinds)
        bodies = [text for other in found for text in (other.good, other.bad)]
        clash = any(mine in body or body in mine for mine in (one.good, one.bad) for body in bodies)
        if not clash and one.name not in {other.name for other in found}:
            found.append(one)
    return found
