"""A running estimate while a paired plan is played."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness_adapters.evaluation.pairs import solved
from harness_adapters.evaluation.statistics import paired_difference
from harness_adapters.records import Rollout


class Tally:
    """What the sessions so far say, by harness."""

    def __init__(self, arms: Sequence[str]) -> None:
        """Labels of the arms; the first is what the others are compared with."""
        self._arms = list(arms)
        self._outcomes: dict[tuple[str, str], dict[tuple[str, int], bool]] = {}

    def add(self, rollouts: Iterable[Rollout]) -> None:
        """Further sessions; those without a score say nothing."""
        for rollout in rollouts:
            if rollout.reward is not None and rollout.arm in self._arms:
                outcomes = self._outcomes.setdefault((rollout.harness, rollout.arm), {})
                outcomes.setdefault((rollout.task, rollout.attempt), solved(rollout))

    def line(self, harness: str) -> str:
        """`base 41%, pi-v8 52%, +11 [-2, 24] on 60 pairs`: each arm against the first."""
        first = self._outcomes.get((harness, self._arms[0]), {})
        parts = [self._share(self._arms[0], first)] if first else []
        for arm in self._arms[1:]:
            own = self._outcomes.get((harness, arm), {})
            if own:
                parts.append(self._share(arm, own))
            both = sorted(first.keys() & own.keys())
            if len({task for task, _ in both}) > 1:
                found = paired_difference(
                    [first[key] for key in both],
                    [own[key] for key in both],
                    [task for task, _ in both],
                )
                parts.append(
                    f"{100 * found.difference:+.0f} [{100 * found.low:.0f}, "
                    f"{100 * found.high:.0f}] on {len(both)} pairs"
                )
        return ", ".join(parts)

    @staticmethod
    def _share(arm: str, outcomes: dict[tuple[str, int], bool]) -> str:
        return f"{arm} {sum(outcomes.values()) / len(outcomes):.0%}"
