"""Running a paired plan: the same tasks and attempts for every arm, interleaved in time."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.engine import BASE
from harness_adapters.errors import EngineError
from harness_adapters.evaluation.plan import PlannedSession
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.pool import Pool
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import Stack
from harness_adapters.store import Store
from harness_adapters.tasks import Task


@dataclass(frozen=True, slots=True)
class Arm:
    """One side of a comparison: a label and the adapter it plays with (None: no adapter)."""

    label: str
    adapter: str = BASE
    version: int = 0
    path: Path | None = None


async def execute(
    planned: Sequence[PlannedSession],
    *,
    arms: Sequence[Arm],
    tasks: Sequence[Task],
    phase: Phase,
    temperature: float,
    stack: Stack,
    store: Store,
    concurrency: int,
    reporter: Reporter,
) -> list[Rollout]:
    """Run what is planned, keep each rollout in the store, return them in the plan's order."""
    by_label = {arm.label: arm for arm in arms}
    by_id = {task.id: task for task in tasks}
    plans = [
        SessionPlan(
            task=by_id[session.task],
            phase=phase,
            arm=session.arm,
            adapter=by_label[session.arm].adapter,
            version=by_label[session.arm].version,
            group=f"{phase}/{session.task}",
            attempt=session.attempt,
            step=0,
            temperature=temperature,
            seed=session.seed,
        )
        for session in planned
    ]
    solved: dict[str, list[bool]] = {arm.label: [] for arm in arms}

    def note(rollout: Rollout) -> None:
        if rollout.correct is not None:
            solved[rollout.arm].append(rollout.correct)
        shares = (f"{k} {sum(v) / len(v):.0%}" for k, v in solved.items() if v)
        reporter.advance(1, ", ".join(shares))

    mounted = [arm for arm in arms if arm.path is not None]
    try:
        for arm in mounted:
            assert arm.path is not None
            await stack.engine.load_adapter(arm.adapter, arm.path)
        return await Pool(stack.runner, concurrency, store.add).run(plans, note)
    finally:
        for arm in mounted:
            with contextlib.suppress(EngineError):  # a dead engine holds nothing
                await stack.engine.unload_adapter(arm.adapter)
