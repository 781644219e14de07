"""Which tasks a training step samples: those whose groups are likely to disagree with themselves.

A group teaches only if some of its rollouts succeed and some fail. With pass rate p a group of n
is mixed with probability 1 - p^n - (1-p)^n, and a mixed one teaches by its variance, p (1 - p). So
family-levels are drawn with weight (4 p (1 - p))^2, p estimated from this run's own rollouts, older
ones fading. They fade with every step, too, whether their kind was drawn or not: the policy moves,
and what it learns elsewhere can cost a kind that it once solved. Such a kind is looked at again
before it is lost, for a group in which nothing succeeds pulls nothing back.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness_adapters.records import Rollout
from harness_adapters.tasks import Task

Kind = tuple[str, int]
"""Family and level."""

DECAY = 0.97
"""Weight of a rollout's evidence after each later rollout of its kind."""

AGE = 0.85
"""Weight of all evidence after each later step."""

PRIOR_STRENGTH = 2.0
"""Rollouts' worth of belief in the prior pass rate of one half."""

FLOOR = 0.03
"""Smallest weight: kinds thought saturated or hopeless are still looked at now and then."""

AGAIN = 0.5
"""What is left of a kind's weight each time that a step has drawn it."""


@dataclass(slots=True)
class Curriculum:
    """Pass-rate estimates by kind, and draws by them."""

    _wins: dict[Kind, float] = field(default_factory=dict[Kind, float])
    _seen: dict[Kind, float] = field(default_factory=dict[Kind, float])

    def learn(self, rollouts: Iterable[Rollout]) -> None:
        """Take scored rollouts as evidence, oldest first."""
        for rollout in rollouts:
            if rollout.correct is None:
                continue
            kind = (rollout.family, rollout.level)
            self._wins[kind] = DECAY * self._wins.get(kind, 0.0) + float(rollout.correct)
            self._seen[kind] = DECAY * self._seen.get(kind, 0.0) + 1.0

    def age(self) -> None:
        """Let all evidence fade: the policy has made a step."""
        for evidence in (self._wins, self._seen):
            for kind in evidence:
                evidence[kind] *= AGE

    def pass_rate(self, kind: Kind) -> float:
        """Estimate in (0, 1); one half where nothing is known."""
        wins, seen = self._wins.get(kind, 0.0), self._seen.get(kind, 0.0)
        return (wins + PRIOR_STRENGTH / 2) / (seen + PRIOR_STRENGTH)

    def weight(self, kind: Kind) -> float:
        """How much a task of this kind is worth sampling, in [FLOOR, 1]."""
        rate = self.pass_rate(kind)
        return max(FLOOR, (4 * rate * (1 - rate)) ** 2)

    def draw(
        self, tasks: Sequence[Task], count: int, *, seed: str, used: Iterable[str]
    ) -> list[Task]:
        """`count` tasks, mostly of different kinds, each once.

        A kind's tasks in `used` come again only when it has no others left. Deterministic by `seed`
        and the evidence so far.
        """
        used = set(used)
        fresh: dict[Kind, list[Task]] = {}
        spare: dict[Kind, list[Task]] = {}
        for task in sorted(tasks, key=lambda t: t.id):
            piles = spare if task.id in used else fresh
            piles.setdefault((task.family, task.level), []).append(task)
        rng = random.Random(seed)
        weights = {kind: self.weight(kind) for kind in sorted({*fresh, *spare})}
        chosen: list[Task] = []
        while len(chosen) < count and weights:
            kind = rng.choices(list(weights), list(weights.values()))[0]
            weights[kind] *= AGAIN
            pile = fresh.get(kind) or spare[kind]
            chosen.append(pile.pop(rng.randrange(len(pile))))
            if not fresh.get(kind) and not spare.get(kind):
                del weights[kind]
        return chosen
