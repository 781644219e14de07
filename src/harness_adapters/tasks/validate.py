"""Does each task's verifier reward the right thing, and only that?

For every task: nothing done scores 0, the oracle scores 1, degenerate attempts score 0. Everything
runs in the same sandboxes and through the same verifier call as a real session.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.sandbox import (
    Bind,
    BwrapSandbox,
    Frozen,
    Limits,
    State,
    Verification,
    temporary_state,
    verify,
)
from harness_adapters.tasks.dataset import Dataset
from harness_adapters.tasks.degenerate import Workspace, attempts, read_workspace
from harness_adapters.tasks.task import Task


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What was wrong with one task."""

    task: Task
    problems: tuple[str, ...]
    """One line each; empty when the task is sound."""
    attempts: int
    """How often the verifier ran."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the task may be used."""
        return not self.problems


async def validate(
    dataset: Dataset,
    *,
    jobs: int = 2,
    progress: Callable[[TaskReport], None] | None = None,
) -> list[TaskReport]:
    """One report per task, in the dataset's order. `progress` gets each when it is done.

    Raises SandboxError when this machine can't run sandboxes.
    """
    free = asyncio.Semaphore(jobs)

    async def one(task: Task) -> TaskReport:
        async with free:
            report = await validate_task(task)
        if progress is not None:
            progress(report)
        return report

    running = [asyncio.ensure_future(one(task)) for task in dataset.tasks]
    try:
        return list(await asyncio.gather(*running))
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def validate_task(task: Task) -> TaskReport:
    """Check one task."""
    started = time.monotonic()
    problems: list[str] = []
    count = 2
    problem = _expect(0, "nothing done", await _score(task, read_workspace(task.files)))
    problems += [problem] if problem else []
    problems += await _oracle_problems(task)
    for attempt in attempts(task):
        count += 1
        problem = _expect(0, attempt.name, await _score(task, attempt.files))
        problems += [problem] if problem else []
    return TaskReport(task, tuple(problems), count, time.monotonic() - started)


async def _oracle_problems(task: Task) -> list[str]:
    if not (task.solution / "solve.sh").is_file():
        return ["no solution/solve.sh, so nothing shows that the task can be solved"]
    limits = Limits(memory_mb=task.memory_mb)
    async with BwrapSandbox(
        task.lowers, task.workdir, binds=[Bind(task.solution, "/solution")], limits=limits
    ) as box:
        result = await box.exec(
            ["/bin/bash", "/solution/solve.sh"], env={}, timeout=task.agent_timeout
        )
        frozen = box.freeze()
    with frozen:
        verification = await verify(
            frozen,
            lowers=task.lowers,
            tests=task.tests,
            workdir=task.workdir,
            timeout=task.verifier_timeout,
            limits=limits,
            confined=task.confined_modules,
        )
    problem = _expect(1, "the oracle (solve.sh)", verification)
    if problem and result.returncode != 0:
        complaint = result.stderr.decode(errors="replace").strip().splitlines()
        problem += f"; it exited with {result.returncode}: {(complaint or ['no message'])[-1]}"
    return [problem] if problem else []


async def _score(task: Task, files: Workspace) -> Verification:
    """Run the verifier on a working directory made of these files."""
    with temporary_state(State.WORKSPACE) as place:
        layer, workspace = place / "layer", place / "workspace"
        layer.mkdir()
        await asyncio.to_thread(_write, workspace, files)
        return await verify(
            Frozen(layer, 0, 0, 0),
            lowers=[workspace],
            tests=task.tests,
            workdir=task.workdir,
            timeout=task.verifier_timeout,
            limits=Limits(memory_mb=task.memory_mb),
            confined=task.confined_modules,
        )


def _write(root: Path, files: Workspace) -> None:
    root.mkdir()
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _expect(score: int, who: str, verification: Verification) -> str:
    """One line when the verifier said something else, else empty."""
    if verification.score == score:
        return ""
    if verification.score is None:
        return f"{who}: no reward ({verification.error})"
    last = (verification.output.strip().splitlines() or ["no output"])[-1]
    return f"{who}: scored {verification.score:g} instead of {score} ({last[:120]})"
