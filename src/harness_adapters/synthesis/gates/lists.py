"""Decontamination: what belongs to an evaluation never becomes a training task.

By name, where a session says where it comes from, and by content, where a list of texts was given:
one shared run of 13 words with an instruction is enough (the n of GPT-3's report, appendix C).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import ConfigError

NGRAM = 13
_EVALUATIONS = re.compile(
    r"\b[\w.-]+__[\w.-]+-\d+\b"  # instance ids of SWE-bench and its relatives
    r"|swe[-_ ]?bench|swe[-_ ]?gym|human[-_ ]?eval|\bmbpp\b|terminal[-_ ]?bench"
    r"|live[-_ ]?code[-_ ]?bench|big[-_ ]?code[-_ ]?bench|aider[-_ ]?polyglot"
    r"|\bgaia\b|multi[-_ ]?swe|/testbed\b",  # where SWE-bench's images keep the repository
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Decontamination:
    """Names and runs of words that must not appear."""

    names: frozenset[str] = frozenset()
    grams: frozenset[tuple[str, ...]] = frozenset()

    def name_in(self, *places: str) -> str:
        """The first name of an evaluation in these texts; empty when there is none."""
        for place in places:
            if found := _EVALUATIONS.search(place):
                return found[0]
            folded = place.casefold()
            for name in self.names:
                if name in folded:
                    return name
        return ""

    def text_in(self, text: str) -> str:
        """The first run of words that a listed text has, too."""
        if not self.grams:
            return ""
        return next((" ".join(gram) for gram in ngrams(text) if gram in self.grams), "")


def ngrams(text: str) -> Iterator[tuple[str, ...]]:
    """All runs of 13 words, in lower case."""
    words = [word.casefold() for word in _WORD.findall(text)]
    return (tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))


def read_lists(paths: Iterable[Path]) -> Decontamination:
    """Lists from files: each line a name, a text, or a JSON object whose strings count.

    A line of at least 13 words is a text, a shorter one a name (of 4 characters or more). Raises
    ConfigError where a file can't be read.
    """
    names: set[str] = set()
    grams: set[tuple[str, ...]] = set()
    for path in paths:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"{path}: can't be read as a list ({error}); give a text file"
            ) from None
        for entry in (value for line in lines for value in _values(line)):
            found = set(ngrams(entry))
            grams |= found
            if not found and len(entry.strip()) >= 4:
                names.add(entry.strip().casefold())
    return Decontamination(frozenset(names), frozenset(grams))


def _values(line: str) -> Iterator[str]:
    if not line.lstrip().startswith("{"):
        yield line
        return
    try:
        row = json.loads(line)
    except ValueError:
        yield line
        return
    yield from (value for value in row.values() if isinstance(value, str))
