"""What one look at the machine found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Importance(StrEnum):
    """What a failed check means."""

    NEEDED = "needed"
    """Nothing runs without it."""
    WISHED = "wished"
    """Things run, but slower, smaller, or after a step that is taken when it is first needed."""


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `remedy` says what to do and is empty where `ok`."""

    name: str
    ok: bool
    detail: str
    """What was found, in a few words."""
    remedy: str = ""
    importance: Importance = Importance.NEEDED

    @property
    def blocks(self) -> bool:
        """Nothing can run until this is repaired."""
        return not self.ok and self.importance is Importance.NEEDED
