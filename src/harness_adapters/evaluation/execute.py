"""Running a paired plan: the same tasks and attempts for every arm, interleaved in time."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.engine import BASE, Engine
from harness_adapters.errors import EngineError
from harness_adapters.evaluation.plan import PlannedSession
from harness_adapters.evaluation.tally import Tally
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


@asynccontextmanager
async def mounted(engine: Engine, arms: Sequence[Arm]) -> AsyncIterator[None]:
    """The arms' adapters on an engine; leaving takes them off."""
    loaded: list[Arm] = []
    try:
        for arm in arms:
            if arm.path is not None:
                await engine.load_adapter(arm.adapter, arm.path)
                loaded.append(arm)
        yield
    finally:
        for arm in loaded:
            with contextlib.suppress(EngineError):  # a dead engine holds nothing
                await engine.unload_adapter(arm.adapter)


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
    tally: Tally | None = None,
) -> list[Rollout]:
    """Run what is planned, keep each rollout in the store, return them in the plan's order.

    The arms' adapters must be mounted. `tally` knows what was played before.
    """
    by_label = {arm.label: arm for arm in arms}
    by_id = {task.id: task for task in tasks}
    tally = tally or Tally([arm.label for arm in arms])
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

    def note(rollout: Rollout) -> None:
        tally.add([rollout])
        reporter.advance(1, tally.line(rollout.harness))

    return await Pool(stack.runner, concurrency, store.add, stack.share).run(plans, note)
