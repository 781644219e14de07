"""Guard: what a tool call would do, whether that is allowed, and the audit log.

The sandbox is the boundary; the guard is signal and audit. It knows nothing of HTTP and training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness_adapters.records import Verdict


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """A tool call as the model wrote it, before any harness sees it."""

    session: str
    task: str
    harness: str
    turn: int
    name: str
    arguments: str
    """JSON text; may be malformed."""
    workdir: str


class Policy(Protocol):
    """Decides on tool calls. An exception raised by `judge` counts as a block (fail closed)."""

    def judge(self, call: ProposedCall) -> Verdict:
        """The verdict on one call; must not change any state outside the policy."""
        ...
