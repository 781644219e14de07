"""What a step's rollouts look like, before any learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness_adapters.records import Conduct, Rollout


def in_order(rollouts: Iterable[Rollout]) -> list[Rollout]:
    """By plan, not by the clock, so that a continued run sees what an uninterrupted one saw."""
    return sorted(rollouts, key=lambda r: (r.step, r.group, r.attempt))


def summary(rollouts: list[Rollout], first: int) -> dict[str, Any]:
    """What a step's rollouts look like, before any learning.

    Means are over the `first` attempts of each group: later ones were played because of how these
    went, and would pull every rate towards one half.
    """
    unselected = [r for r in rollouts if r.reward is not None and r.attempt < first]
    kinds = Counter(_kind(group) for group in _groups(r for r in rollouts if r.reward is not None))
    begun = min((rollout.started for rollout in rollouts), default=0.0)
    ended = max((rollout.started + rollout.seconds for rollout in rollouts), default=0.0)
    return {
        "reward": _mean(rollout.reward or 0.0 for rollout in unselected),
        "pass_rate": _mean(bool(rollout.correct) for rollout in unselected),
        "calls": _mean(rollout.calls for rollout in unselected),
        "turns": _mean(len(rollout.turns) for rollout in unselected),
        "sessions": len(rollouts),
        "unscored": sum(rollout.reward is None for rollout in rollouts),
        "guard/blocked": sum(rollout.blocked for rollout in rollouts),
        "guard/malformed": sum(rollout.malformed for rollout in rollouts),
        "guard/flagged": sum(rollout.conduct is Conduct.FLAGGED for rollout in rollouts),
        "guard/cheats": sum(rollout.conduct is Conduct.CHEAT for rollout in rollouts),
        "guard/hacked": sum(_hacked(rollout) for rollout in rollouts),
        "groups": sum(kinds.values()),
        "groups/mixed": kinds["mixed"],
        "groups/all_correct": kinds["all_correct"],
        "groups/all_wrong": kinds["all_wrong"],
        "sample_seconds": ended - begun,
    }


def _hacked(rollout: Rollout) -> bool:
    """Paid in full for a cheat, which happens only where verdicts are not enforced."""
    return rollout.conduct is Conduct.CHEAT and (rollout.score or 0.0) >= 1.0


def _mean(values: Iterable[float]) -> float:
    """0 for no values."""
    known = list(values)
    return sum(known) / max(1, len(known))


def _groups(rollouts: Iterable[Rollout]) -> list[list[Rollout]]:
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.group, []).append(rollout)
    return list(groups.values())


def _kind(group: list[Rollout]) -> str:
    correct = sum(bool(rollout.correct) for rollout in group)
    if correct == 0:
        return "all_wrong"
    return "all_correct" if correct == len(group) else "mixed"
