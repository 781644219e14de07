"""Harness: how to start one agent CLI headless, unmodified, and how to read what it did.

A driver gives files, environment and argv; configuration only, never a patch of the agent's
source. It knows nothing of models and rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import Bind, ExecResult
from harness_adapters.tasks import Action

HOME = "/home/agent"
"""The agent's home inside every sandbox; the same path always, so that prompts are identical."""


BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": HOME,
    "SHELL": "/bin/bash",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
}
"""What every agent has; nothing of our own environment is inherited."""


class Profile(StrEnum):
    """How a harness is configured."""

    STOCK = "stock"
    """As a user gets it."""
    LEAN = "lean"
    """Configuration-only switches that shrink the prompt; for small machines."""


@dataclass(frozen=True, slots=True)
class Launch:
    """All that a sandbox needs to run one session of an agent."""

    argv: Sequence[str]
    env: Mapping[str, str]
    stdin: bytes
    home_files: Mapping[str, str]
    """Text by path relative to HOME, written before the start."""
    binds: Sequence[Bind] = field(default_factory=tuple[Bind, ...])


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A tool call that an agent took up, as its own record of the session has it."""

    id: str
    name: str
    """Empty for a call that the agent refused to read, so that nothing of it ran."""
    arguments: object
    """A JSON value, or the text that the agent couldn't read as one."""


class Harness(Protocol):
    """Driver of one agent CLI."""

    @property
    def name(self) -> str:
        """`pi`, `opencode`, `hermes`, ..."""
        ...

    @property
    def version(self) -> str:
        """The pinned version of the CLI."""
        ...

    def installed(self) -> Path:
        """Where the CLI lies. Raises HarnessError saying how to install it."""
        ...

    def complete(self, root: Path) -> bool:
        """Whether `root` holds a whole install of this version."""
        ...

    def build(self, work: Path, say: Callable[[str], None]) -> None:
        """Install into the empty directory `work` and try it. Raises HarnessError.

        `work` is renamed afterwards: nothing in it may name its own path.
        """
        ...

    def launch(self, prompt: str, *, base_url: str, profile: Profile, max_context: int) -> Launch:
        """How to start a session that talks to the gateway; `base_url` ends in `/v1`."""
        ...

    def end(self, result: ExecResult, *, model_calls: int) -> tuple[SessionEnd, str]:
        """Classify the agent's exit by its output (exit codes can't be trusted); and why."""
        ...

    def native_call(self, action: Action) -> tuple[str, dict[str, object]]:
        """An oracle's action as a call of this harness's own tool: name and arguments."""
        ...

    def finishing_call(self) -> tuple[str, dict[str, object]] | None:
        """The call that says that the task is done; None where a text without a call does."""
        ...

    def record_command(self) -> Sequence[str] | None:
        """Prints the agent's own record of a session, in its sandbox; None: its stdout is that."""
        ...

    def taken_up(self, record: bytes) -> list[AgentCall] | None:
        """The calls in that record, in order; None where this agent keeps none.

        Hostile: what the agent ran may have written into it. Never raises on what it holds.
        """
        ...
