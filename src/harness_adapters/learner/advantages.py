"""Advantages of a group of rollouts of one task: reward relative to the others'.

`mean`   A = R - mean(R). The default: the efficiency bonus keeps its true, small size.
`grpo`   A = (R - mean(R)) / (std(R) + 1e-4), unbiased std (DeepSeekMath, arXiv 2402.03300; the
         constant is TRL's). Blows up the bonus in all-correct groups: for ablations.
`dr_grpo` A = R - mean(R), as `mean`; the other half of it is `normalisation = "constant"` (arXiv
         2503.20783).
`rloo`   A = R - mean of the others (arXiv 2402.14740).
`gated`  correctness and bonus apart: A = (v - mean(v)) / max(std(v), 0.1) with v = 1 for correct
         rollouts, else 0, and for the correct ones + pass rate * (R - mean(R of the correct)). So
         the bonus only tells correct rollouts apart, and only as loudly as the group is right.

Rollouts whose reward is None (infrastructure failed) are left out and get None.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeAlias

Estimator: TypeAlias = Literal["mean", "grpo", "dr_grpo", "rloo", "gated"]

STD_FLOOR = 1e-4
GATED_STD_FLOOR = 0.1
ZERO = 1e-9
"""Advantages smaller than this are rounding of equal rewards: exactly 0."""


class GroupKind(StrEnum):
    """What a group can teach."""

    MIXED = "mixed"
    """Some solved it: the task is neither too easy nor too hard."""
    ALL_CORRECT = "all_correct"
    """Only the bonus differs."""
    ALL_WRONG = "all_wrong"
    UNSCORED = "unscored"
    """No rollout has a reward."""


def group_advantages(
    rewards: Sequence[float | None],
    method: Estimator = "mean",
    correct: Sequence[bool | None] | None = None,
) -> list[float | None]:
    """One advantage per rollout; a lone scored rollout gets 0, having nothing to compare with.

    `correct`, parallel to `rewards`, is needed for `gated` alone; None in it counts as not correct.
    """
    scored = [r for r in rewards if r is not None]
    if len(scored) < 2:
        return [None if r is None else 0.0 for r in rewards]
    if method == "gated":
        return _gated(rewards, correct or [None] * len(rewards))
    mean = statistics.fmean(scored)
    scale = 1.0
    if method == "grpo":
        scale = 1.0 / (statistics.stdev(scored) + STD_FLOOR)
    elif method == "rloo":
        scale = len(scored) / (len(scored) - 1)
    centred = [None if r is None else r - mean for r in rewards]
    return [None if c is None else (0.0 if abs(c) < ZERO else c * scale) for c in centred]


def _gated(rewards: Sequence[float | None], correct: Sequence[bool | None]) -> list[float | None]:
    pairs = list(zip(rewards, correct, strict=True))
    right = [float(bool(c)) for r, c in pairs if r is not None]
    paid = [r for r, c in pairs if r is not None and c]
    rate, scale = statistics.fmean(right), max(statistics.stdev(right), GATED_STD_FLOOR)

    def advantage(reward: float, solved: bool) -> float:
        value = (float(solved) - rate) / scale
        if solved:
            value += rate * (reward - statistics.fmean(paid))
        return 0.0 if abs(value) < ZERO else value

    return [None if r is None else advantage(r, bool(c)) for r, c in pairs]


def group_kind(correct: Sequence[bool | None]) -> GroupKind:
    """Kind of a group from its scored rollouts' correctness (None: not scored)."""
    known = [c for c in correct if c is not None]
    if not known:
        return GroupKind.UNSCORED
    if all(known):
        return GroupKind.ALL_CORRECT
    return GroupKind.MIXED if any(known) else GroupKind.ALL_WRONG
