"""The order of the gates: what costs nothing first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from harness_adapters.synthesis.gates.guess import guessable
from harness_adapters.synthesis.gates.leaks import leaks
from harness_adapters.synthesis.gates.limits import decontaminated, licence, runtime, size
from harness_adapters.synthesis.gates.running import degenerate_attempts, nothing_done, oracle
from harness_adapters.synthesis.gates.strength import every_hunk, mutation
from harness_adapters.synthesis.gates.trial import Gate, Trial, Verdict

GATES: Mapping[str, Gate] = {
    "licence": licence,
    "decontamination": decontaminated,
    "size": size,
    "leaks": leaks,
    "runtime": runtime,
    "nothing done": nothing_done,
    "oracle": oracle,
    "degenerate attempts": degenerate_attempts,
    "every hunk": every_hunk,
    "mutation": mutation,
    "guessability": guessable,
}


@dataclass(frozen=True, slots=True)
class Passage:
    """One gate's verdict on one candidate."""

    gate: str
    verdict: Verdict
    seconds: float


async def run_gates(trial: Trial) -> list[Passage]:
    """Every gate up to the first that drops; kept when the last one's reason is None."""
    passages = []
    for name, gate in GATES.items():
        started = time.monotonic()
        verdict = await gate(trial)
        passages.append(Passage(name, verdict, round(time.monotonic() - started, 2)))
        if verdict.reason is not None:
            break
    return passages
