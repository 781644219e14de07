"""Advantages of a group of rollouts of one task: reward relative to the others'.

`mean`   A = R - mean(R). The default: the efficiency bonus keeps its true, small size.
`grpo`   A = (R - mean(R)) / (std(R) + 1e-4), unbiased std (DeepSeekMath, arXiv 2402.03300; the
         constant is TRL's). Blows up the bonus in all-correct groups: for ablations.
`rloo`   A = R - mean of the others (arXiv 2402.14740).

Rollouts whose reward is None (infrastructure failed) are left out and get None.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from enum import StrEnum
from typing import Literal

STD_FLOOR = 1e-4
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
    rewards: Sequence[float | None], method: Literal["mean", "grpo", "rloo"] = "mean"
) -> list[float | None]:
    """One advantage per rollout; a lone scored rollout gets 0, having nothing to compare with."""
    scored = [r for r in rewards if r is not None]
    if len(scored) < 2:
        return [None if r is None else 0.0 for r in rewards]
    mean = statistics.fmean(scored)
    scale = 1.0
    if method == "grpo":
        scale = 1.0 / (statistics.stdev(scored) + STD_FLOOR)
    elif method == "rloo":
        scale = len(scored) / (len(scored) - 1)
    centred = [None if r is None else r - mean for r in rewards]
    return [None if c is None else (0.0 if abs(c) < ZERO else c * scale) for c in centred]


def group_kind(correct: Sequence[bool | None]) -> GroupKind:
    """Kind of a group from its scored rollouts' correctness (None: not scored)."""
    known = [c for c in correct if c is not None]
    if not known:
        return GroupKind.UNSCORED
    if all(known):
        return GroupKind.ALL_CORRECT
    return GroupKind.MIXED if any(known) else GroupKind.ALL_WRONG
