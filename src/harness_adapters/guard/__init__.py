"""Guard: what a tool call would do, whether that is allowed, and the audit log.

The sandbox is the boundary; the guard is signal and audit. It knows nothing of HTTP and training.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from harness_adapters.records import Verdict

if TYPE_CHECKING:
    from harness_adapters.guard.policy.rules import TaskRules


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
    rules: TaskRules | None = None
    """What the task adds to a policy."""
    files: Path | None = None
    """Directory of this machine whose content the task put into `workdir`."""


class Policy(Protocol):
    """Decides on tool calls. An exception raised by `judge` counts as a block (fail closed)."""

    def judge(self, call: ProposedCall) -> Verdict:
        """The verdict on one call; must not change any state outside the policy."""
        ...
