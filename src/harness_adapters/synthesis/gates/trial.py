"""What a gate is given and what it says."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from harness_adapters.sandbox import Verification
from harness_adapters.synthesis.candidate import Candidate
from harness_adapters.synthesis.endpoint import Endpoint
from harness_adapters.synthesis.gates.lists import Decontamination
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.tasks import Task
from harness_adapters.tasks.score import score_files

Contents: TypeAlias = Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one gate found."""

    reason: Reason | None
    """None: passed."""
    detail: str = ""
    facts: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])
    """What was measured, for the manifest."""


def passed(**facts: float | int | str) -> Verdict:
    """The gate has nothing against it."""
    return Verdict(None, facts=facts)


def drop(reason: Reason, detail: str, **facts: float | int | str) -> Verdict:
    """The candidate ends here."""
    return Verdict(reason, detail, facts)


@dataclass(slots=True)
class Trial:
    """A candidate under test, written as a task."""

    candidate: Candidate
    task: Task
    decontamination: Decontamination
    guesser: Endpoint | None = None
    scores: int = 0
    """How often the verifier ran."""

    async def score(self, files: Contents, **env: str) -> Verification:
        """The verifier's word on a working directory of these files."""
        self.scores += 1
        return await score_files(self.task, files, env=env)


Gate: TypeAlias = Callable[[Trial], Awaitable[Verdict]]


def result_of(verification: Verification) -> dict[str, Any]:
    """What the verifier reported on its last line; empty when it said nothing."""
    for line in reversed(verification.output.splitlines()):
        if line.startswith("RESULT "):
            try:
                found = json.loads(line.removeprefix("RESULT "))
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


def last_line(verification: Verification) -> str:
    """The verifier's first complaint, for people."""
    if verification.error:
        return verification.error
    lines = verification.output.splitlines()
    complaints = [line for line in lines if line.startswith("FAILED: ")]
    return (complaints or lines or ["no output"])[0][:200]
