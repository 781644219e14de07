"""Ending a training in time for what comes after it."""

from __future__ import annotations

import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a training has to end for what comes after it to be done in time."""

    at: float
    """On the monotonic clock, in seconds."""
    sessions_after: int
    """Sessions that have to be played between the training's end and then."""

    def leaves_no_step(self, began: float, steps: int, sessions: int) -> bool:
        """Whether one more step would be too many, by the `steps` and `sessions` since `began`.

        A step more costs its sampling, its update and its validation: two steps' time.
        """
        now = time.monotonic()
        elapsed = now - began
        after = self.sessions_after * elapsed / max(1, sessions)
        return now + 2 * elapsed / max(1, steps) + after > self.at
