"""Running a task's verifier without an agent: on files that are given, and on the oracle's work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from harness_adapters.sandbox import (
    Bind,
    BwrapSandbox,
    ExecResult,
    Frozen,
    Limits,
    State,
    Verification,
    temporary_state,
    verify,
)
from harness_adapters.tasks.task import Task


async def score_files(
    task: Task, files: Mapping[str, bytes], *, env: Mapping[str, str] | None = None
) -> Verification:
    """Run the verifier on a working directory that holds these files and nothing else.

    `env` is added to the verifier's environment. Raises SandboxError where it can't run at all.
    """
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
            env=env,
            limits=Limits(memory_mb=task.memory_mb),
            confined=task.confined_modules,
        )


async def score_oracle(
    task: Task, *, env: Mapping[str, str] | None = None
) -> tuple[ExecResult, Verification]:
    """Run `solution/solve.sh` in a sandbox of its own, then the verifier on what it left."""
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
            env=env,
            limits=limits,
            confined=task.confined_modules,
        )
    return result, verification


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir()
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
