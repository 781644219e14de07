"""How hard each single task is for a model in its agent: successes of k sessions, with an interval.

A figure holds for one model, agent, way of sampling and content of the task, and is stored with
these. Sessions without a verdict don't count.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from harness_adapters.engine import BASE
from harness_adapters.errors import TaskError
from harness_adapters.evaluation.statistics import wilson
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.pool import Pool
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import open_stack
from harness_adapters.tasks import Task
from harness_adapters.tasks.dataset import task_hash
from harness_adapters.training.pipeline import prepare_base
from harness_adapters.training.run import Run

MOST = 16
"""Sessions of a task whose first ones all ended alike."""


class Bucket(StrEnum):
    """How often a task is solved."""

    NEVER = "never"
    RARELY = "rarely"
    """Up to 30%."""
    SOMETIMES = "sometimes"
    MOSTLY = "mostly"
    """From 70%."""
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Stratum:
    """One task's figures."""

    task: str
    sha256: str
    """Of all files of the task."""
    model: str
    harness: str
    version: str
    profile: str
    temperature: float
    solved: int
    sessions: int
    low: float
    high: float
    """Wilson's interval of the share that is solved, 95%."""
    bucket: Bucket


async def stratify(
    run: Run, reporter: Reporter, *, attempts: int = 4, most: int = MOST
) -> list[Stratum]:
    """Play every task `attempts` times with the run's base, and up to `most` times where it was
    solved never or always; what the run directory holds isn't played again.

    Writes `strata.jsonl` into the run directory. Raises TaskError when there is nothing to play.
    """
    tasks = run.dataset.tasks
    if not tasks:
        raise TaskError(f"{run.dataset.root}: no task to play")
    temperature = run.settings.train.temperature
    base = await prepare_base(run, reporter)
    done = _played(run, temperature)
    first = _missing(tasks, done, attempts, temperature)
    if first or _alike_plans(tasks, done, attempts, most, temperature):
        async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
            pool = Pool(stack.runner, run.settings.concurrency, run.store.add)
            reporter.phase("every task", len(first))
            await pool.run(first, lambda _: reporter.advance(1))
            done = _played(run, temperature)
            again = _alike_plans(tasks, done, attempts, most, temperature)
            reporter.phase("tasks that ended alike each time", len(again))
            await pool.run(again, lambda _: reporter.advance(1))
    found = [_stratum(run, task, _played(run, temperature)) for task in tasks]
    _write(run.root / "strata.jsonl", found)
    return found


def bucket_of(solved: int, sessions: int) -> Bucket:
    """By the share of sessions that solved it; without sessions, never."""
    if solved == 0:
        return Bucket.NEVER
    if solved == sessions:
        return Bucket.ALWAYS
    share = solved / sessions
    if share <= 0.3:
        return Bucket.RARELY
    return Bucket.MOSTLY if share >= 0.7 else Bucket.SOMETIMES


def _played(run: Run, temperature: float) -> list[Rollout]:
    return [
        rollout
        for rollout in run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
        if rollout.temperature == temperature
    ]


def _alike_plans(
    tasks: Sequence[Task], done: Sequence[Rollout], attempts: int, most: int, temperature: float
) -> list[SessionPlan]:
    """More sessions of the tasks whose first ones all ended the same way."""
    alike = []
    for task in tasks:
        verdicts = [r.correct for r in done if r.task == task.id and r.correct is not None]
        if len(verdicts) >= attempts and len(set(verdicts)) == 1:
            alike.append(task)
    return _missing(alike, done, most, temperature)


def _missing(
    tasks: Sequence[Task], done: Iterable[Rollout], count: int, temperature: float
) -> list[SessionPlan]:
    """Sessions up to `count` with a verdict for each task."""
    plans = []
    for task in tasks:
        own = [rollout for rollout in done if rollout.task == task.id]
        scored = sum(rollout.correct is not None for rollout in own)
        start = max((rollout.attempt for rollout in own), default=-1) + 1
        plans += [
            SessionPlan(
                task=task,
                phase=Phase.DIFFICULTY,
                arm=BASE,
                adapter=BASE,
                version=0,
                group=f"strata/{task.id}",
                attempt=start + number,
                step=0,
                temperature=temperature,
            )
            for number in range(count - scored)
        ]
    return plans


def _stratum(run: Run, task: Task, done: Iterable[Rollout]) -> Stratum:
    verdicts = [r.correct for r in done if r.task == task.id and r.correct is not None]
    solved, sessions = sum(verdicts), len(verdicts)
    interval = wilson(solved, sessions)
    settings = run.settings
    return Stratum(
        task=task.id,
        sha256=task_hash(task),
        model=settings.model.path,
        harness=settings.harness.name,
        version=get_harness(settings.harness.name).version,
        profile=settings.harness.profile,
        temperature=settings.train.temperature,
        solved=solved,
        sessions=sessions,
        low=round(interval.low, 4),
        high=round(interval.high, 4),
        bucket=bucket_of(solved, sessions),
    )


def _write(path: Path, found: Iterable[Stratum]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text("".join(json.dumps(asdict(one)) + "\n" for one in found), "utf-8")
    partial.replace(path)
