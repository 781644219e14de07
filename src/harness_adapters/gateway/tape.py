"""What the gateway is told of a session, and what it writes down."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from harness_adapters.config import BudgetSettings
from harness_adapters.guard.policy.rules import TaskRules
from harness_adapters.records import Message, SessionEnd, Turn


@dataclass(frozen=True, slots=True)
class SessionSpec:
    """One session's identity, its pinned policy version, its sampling and its limits."""

    session: str
    task: str
    harness: str
    workdir: str
    adapter: str
    """Name the engine serves; stands in for whatever model name the harness sends."""
    version: int
    temperature: float
    budget: BudgetSettings
    seed: int | None = None
    """Turn k samples with a seed derived from this and k; None leaves it to the engine."""
    rules: TaskRules | None = None
    """What the task adds to the guard's policy."""
    files: Path | None = None
    """Directory of this machine whose content the task put into `workdir`."""


@dataclass(slots=True)
class Tape:
    """The record of one session, filled while it runs."""

    spec: SessionSpec
    turns: list[Turn] = field(default_factory=list[Turn])
    end: SessionEnd | None = None
    """Set when the gateway ended the session; None when the agent stopped by itself."""
    error: str = ""
    """One line for people: what failed in the engine, or in a request that was refused."""
    model_calls: int = 0
    """Requests with tools, those answered after the end included."""
    auxiliary_calls: int = 0
    """Requests without tools (titles, summaries); answered with canned text, never recorded."""
    token_counts: int = 0
    """Requests that only asked for the size of a prompt; never recorded."""
    messages: list[Message] = field(default_factory=list[Message])
    """Messages of the last recorded request."""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """One engine request at a time per session, so that turns have an order."""
