"""Demonstrations: a scripted oracle plays the model, through the same gateway and agent."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence

from harness_adapters.engine import ChatFormat
from harness_adapters.gateway.scripted import ScriptedEngine, oracle_replies
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.session import SessionPlan, SessionRunner
from harness_adapters.tasks import Task


def demonstration_plan(task: Task) -> SessionPlan:
    """How an oracle session is labelled."""
    return SessionPlan(
        task=task,
        phase=Phase.DEMONSTRATION,
        arm="oracle",
        adapter="oracle",
        version=0,
        group=task.id,
        attempt=0,
        step=0,
        temperature=0.0,
    )


class Oracle:
    """Runs a task's scripted solution as if a model had written it."""

    def __init__(self, runner: SessionRunner, engine: ScriptedEngine, chat: ChatFormat) -> None:
        self._runner, self._engine, self._chat = runner, engine, chat

    async def run(self, plan: SessionPlan) -> Rollout:
        """One oracle session; same form as any other rollout."""
        session = uuid.uuid4().hex[:12]
        replies = oracle_replies(self._chat, self._runner.harness, plan.task.oracle)
        self._engine.script(session, replies)
        return await self._runner.run(plan, session=session)


def spread(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` tasks with every family-level represented as evenly as possible.

    Fixed order: what fewer tasks choose is the beginning of what more tasks choose. Kinds are
    ordered by a hash of their name, so that a round cut short is not an alphabet's beginning.
    """
    by_kind: dict[tuple[str, int], list[Task]] = {}
    for task in sorted(tasks, key=lambda t: (t.seed, t.id)):
        by_kind.setdefault((task.family, task.level), []).append(task)
    kinds = sorted(by_kind, key=lambda kind: hashlib.sha256(repr(kind).encode()).digest())
    rounds = max(map(len, by_kind.values()), default=0)
    chosen = [
        by_kind[kind][turn] for turn in range(rounds) for kind in kinds if turn < len(by_kind[kind])
    ]
    return chosen[:count]
