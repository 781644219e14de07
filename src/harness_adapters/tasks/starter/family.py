"""What a family of the starter suite is made of: drafts, their checks, and common words."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness_adapters.tasks.task import Action, Shell

LEVELS = (1, 2, 3)
"""1: one simple command; 2: the same skill with a choice; 3: two skills, or look first."""

Check: TypeAlias = dict[str, Any]
"""One JSON object for the verifier; `kind` names a module in `checkers/`."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One instance before it is written to disk. Paths are relative to the working directory."""

    instruction: str
    files: dict[str, str]
    oracle: tuple[Action, ...]
    checks: tuple[Check, ...]


Generate: TypeAlias = Callable[[random.Random, int], Draft]


@dataclass(frozen=True, slots=True)
class Family:
    """One kind of task. `generate(random, level)` must use no other source of chance."""

    name: str
    theme: str
    generate: Generate
    test_only: bool = False
    """Never in the training and validation splits: measures what carries over."""


def answer_is(path: str, *texts: str) -> Check:
    """The file holds one of these answers; case, quotes, blanks and a final dot don't count."""
    return {"kind": "answer_is", "path": path, "answers": list(texts)}


def file_equals(path: str, text: str) -> Check:
    """The file holds exactly this text; trailing blanks and newlines don't count."""
    return {"kind": "file_equals", "path": path, "text": text}


def number_in_file(path: str, value: float, tolerance: float = 0.0) -> Check:
    """The file holds one number and nothing else."""
    return {"kind": "number_in_file", "path": path, "value": value, "tolerance": tolerance}


def lines_equal(path: str, lines: Sequence[str], *, ordered: bool = True) -> Check:
    """The file's lines, trailing blanks stripped, are these."""
    return {"kind": "lines_equal", "path": path, "lines": list(lines), "ordered": ordered}


def files_state(present: dict[str, str], absent: Sequence[str] = ()) -> Check:
    """These files hold these texts and those paths don't exist."""
    return {"kind": "files_state", "present": present, "absent": list(absent)}


def python_behaviour(path: str, calls: Sequence[tuple[str, Sequence[Any], Any]]) -> Check:
    """Functions of a Python file return these values: (function, arguments, expected)."""
    return {
        "kind": "python_behaviour",
        "path": path,
        "calls": [
            {"function": name, "arguments": list(arguments), "expected": expected}
            for name, arguments, expected in calls
        ],
    }


def program_output(path: str, runs: Sequence[tuple[Sequence[str], str]]) -> Check:
    """A Python script prints these texts: (arguments, expected standard output)."""
    return {
        "kind": "program_output",
        "path": path,
        "runs": [{"arguments": list(arguments), "stdout": stdout} for arguments, stdout in runs],
    }


def draft(
    instruction: str, files: dict[str, list[str]], command: str, *checks: Check, look: str = ""
) -> Draft:
    """A draft whose oracle is one shell command, after `look` where the agent must look first."""
    steps = (Shell(look), Shell(command)) if look else (Shell(command),)
    return Draft(
        instruction, {path: text_of(lines) for path, lines in files.items()}, steps, checks
    )


def say(rng: random.Random, *wordings: str) -> str:
    """One of several wordings."""
    return rng.choice(wordings)


def text_of(lines: Sequence[object]) -> str:
    """Lines joined, with a final newline."""
    return "".join(f"{line}\n" for line in lines)


def sentence(rng: random.Random, words: int) -> str:
    """Random common words."""
    return " ".join(rng.choice(NOUNS) for _ in range(words))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


NOUNS = _words(
    """angel apple bag ball bank basket beach bed bell bird boat book bottle box bread bridge
    brush bus button cake camera candle card castle cat chair church circle city clock cloud
    coat corner cotton cup desert door dress eagle engine eye farm feather field finger fire
    fish flag floor flour flower foot forest garden gate glass gold hammer hand hat heart hill
    horse house island key king kitchen knife ladder lake lamp leaf lemon letter light lion
    machine map milk mirror moon mountain mouse music nail needle night ocean office orange
    page palace paper park pepper phone picture pig plane plant plate pocket potato queen
    rabbit radio ring river road rock roof room rope saddle salt school sea seed shadow sheep
    ship shirt shoe silver sky snow spider spoon stone street sugar summer sun table temple
    ticket tiger tower town train valley wagon wall water wheel window winter wood"""
)
"""Short and common, because a small model copies rare words wrongly; none is part of another."""

PEOPLE = _words(
    "anna bob carl david emma frank george helen jack jane john kate lisa mark mary mike nick "
    "paul peter rose sam sara steve tom"
)
