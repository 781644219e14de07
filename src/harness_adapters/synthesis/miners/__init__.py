"""Miners: each finds one kind of work in a session that a program can verify.

A miner yields candidates, drafts that lack a part which only a writer can add, and a refusal for
each piece of work that it saw and could not use, so that no session ends without a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

from harness_adapters.synthesis.candidate import Candidate, TaskType
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.reasons import Reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """Work that was seen and can't become a task."""

    type: TaskType
    reason: Reason
    detail: str


class Lack(StrEnum):
    """What a draft lacks."""

    TESTS = "tests"
    """Hidden tests, and the words that say what they ask for."""
    MORE_TESTS = "stronger tests"
    """Tests for what the session's own don't notice."""
    QUESTION = "question"
    """The question to a value that a command computed from data."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A candidate that a model has to complete."""

    candidate: Candidate
    lacks: Lack


Found: TypeAlias = Candidate | Draft | Refusal


class Miner(Protocol):
    """Finds one kind of work by rule alone."""

    def __call__(self, line: Timeline, licence: str) -> Iterable[Found]:
        """What the session holds, in its order; the licence goes into the provenance."""
        ...
