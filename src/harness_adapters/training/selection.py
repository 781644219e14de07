"""Which of the validated versions of an adapter is the run's best.

A validation plays a few dozen sessions, so the highest of several is high by luck in part, and
early versions win often. The last version that isn't clearly below the highest has learned more.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Validation:
    """What one version reached on the validation tasks."""

    step: int
    adapter: str
    version: int
    reward: float
    """Mean of its sessions' rewards."""
    error: float
    """Standard error of that mean."""
    pass_rate: float

    @classmethod
    def of(
        cls, rewards: list[float], passed: list[bool], *, step: int, adapter: str, version: int
    ) -> Validation:
        """The figures of a version's scored sessions; without any, 0 with an endless error."""
        count = len(rewards)
        return cls(
            step=step,
            adapter=adapter,
            version=version,
            reward=sum(rewards) / max(1, count),
            error=statistics.stdev(rewards) / math.sqrt(count) if count > 1 else math.inf,
            pass_rate=sum(passed) / max(1, count),
        )


def choose(best: dict[str, Any] | None, new: Validation) -> dict[str, Any]:
    """The fact `best` after `new`: the last version within one standard error of the highest.

    Only the version of `best` and `new` need to be there still: what an earlier version loses
    against the highest it never wins back.
    """
    highest, error = (
        (float("-inf"), 0.0)
        if best is None
        else (best.get("highest", best["validation"]), best.get("error", 0.0))
    )
    if best is not None and new.reward < highest - error:
        return best
    if new.reward > highest:
        highest, error = new.reward, new.error if math.isfinite(new.error) else 0.0
    return {
        "step": new.step,
        "adapter": new.adapter,
        "version": new.version,
        "validation": new.reward,
        "pass_rate": new.pass_rate,
        "highest": highest,
        "error": error,
    }


def doubt(best: dict[str, Any] | None, base: float | None) -> str | None:
    """What to say of a best version that did worse in validation than the `base` (mean reward)."""
    if best is None or base is None or best["validation"] >= base:
        return None
    return (
        f"{best['adapter']} does worse on the validation tasks than the base (mean reward "
        f"{best['validation']:.2f} against {base:.2f}): train on, with more groups or a lower "
        "learning rate, before you use it"
    )
