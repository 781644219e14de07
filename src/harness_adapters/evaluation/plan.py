"""What a paired evaluation will run, in which order.

Nothing runs here. Both arms meet the same tasks with the same attempt seeds, next to each other in
time: a machine that slows down, a cache that warms up, an engine that degrades then touch both.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness_adapters.records import Phase, Rollout


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """One session to run. `task` is a task's id; `seed` is the same for every arm."""

    task: str
    arm: str
    attempt: int
    seed: int


@dataclass(frozen=True, slots=True)
class PairedPlan:
    """Tasks x attempts x arms, interleaved. The same plan always gives the same sessions."""

    tasks: Sequence[str]
    """Task ids, without repetition."""
    arms: Sequence[str]
    attempts: int = 1
    seed: int = 0
    phase: Phase = Phase.TEST

    def __post_init__(self) -> None:
        for kind, names in (("task", self.tasks), ("arm", self.arms)):
            if len(set(names)) != len(names):
                raise ValueError(f"a {kind} stands twice in the plan")
        if self.attempts < 1 or not self.arms:
            raise ValueError("a plan needs at least one attempt and one arm")

    def sessions(self) -> list[PlannedSession]:
        """All sessions in the order to start them.

        Attempt by attempt; inside one, tasks shuffled (families mix in time) and all arms of a
        task in a row, the arm that goes first alternating from pair to pair.
        """
        planned: list[PlannedSession] = []
        pair = random.Random(f"arms/{self.seed}").randrange(len(self.arms))
        for attempt in range(self.attempts):
            order = list(self.tasks)
            random.Random(f"tasks/{self.seed}/{attempt}").shuffle(order)
            for task in order:
                first = pair % len(self.arms)
                arms = [*self.arms[first:], *self.arms[:first]]
                seed = attempt_seed(self.seed, task, attempt)
                planned += [PlannedSession(task, arm, attempt, seed) for arm in arms]
                pair += 1
        return planned

    def missing(self, done: Iterable[Rollout]) -> list[PlannedSession]:
        """The sessions that `done` doesn't hold with a reward, same order.

        `done` is a store's rollouts as `pairs.matching` leaves them: what another adapter played
        under an arm's label is not done. A session that infrastructure broke is played again.
        """
        finished = {
            (r.arm, r.task, r.attempt)
            for r in done
            if r.phase == self.phase and r.reward is not None
        }
        return [s for s in self.sessions() if (s.arm, s.task, s.attempt) not in finished]


def attempt_seed(seed: int, task: str, attempt: int) -> int:
    """Sampling seed in [0, 2^31) of one attempt at one task, the same for every arm."""
    digest = hashlib.sha256(f"{seed}/{task}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
