"""Miners: each finds one kind of work in a session that a program can verify.

A miner yields candidates, and a refusal for each piece of work that it saw and could not use, so
that no session ends without a reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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


Found: TypeAlias = Candidate | Refusal


class Miner(Protocol):
    """Finds one kind of work by rule alone."""

    def __call__(self, line: Timeline, licence: str) -> Iterable[Found]:
        """What the session holds, in its order; the licence goes into the provenance."""
        ...
