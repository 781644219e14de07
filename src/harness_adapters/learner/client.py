"""Talking to a learner process, and running a warm start, without importing torch."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters import config
from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import LearnerError
from harness_adapters.priority import LEARNER, set_back

LINE_LIMIT = 2**28
"""Bytes of one protocol line: log-probabilities of many pairs are long."""


@dataclass(frozen=True, slots=True)
class PublishedAdapter:
    """An adapter directory that an engine can load."""

    name: str
    path: Path
    version: int


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """The adapter after a step and what was measured. Metric names are TRL's where it has one."""

    step: int
    adapter: str
    path: Path
    version: int
    """The same as before when the step had too little signal to move the weights."""
    metrics: dict[str, float]


class LearnerClient:
    """One learner process. Requests are answered in the order they are made."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        """Use `start`."""
        self._process = process
        self._log = log
        self._lock = asyncio.Lock()
        self.step = -1
        """Last step that the learner's checkpoint held when it started; -1 for none."""
        self.version = 0
        self.note = ""
        """Why prefix sharing is off, else empty."""

    @classmethod
    async def start(cls, run_dir: Path, harness: str, model_dir: Path) -> LearnerClient:
        """Start the process and wait until the model is loaded. Raises LearnerError."""
        log = run_dir / f"learner-{harness}.log"
        arguments = [
            "harness_adapters.learner", str(run_dir),
            "--harness", harness, "--model", str(model_dir),
        ]  # fmt: skip
        file = run_dir / "config.toml"
        threads = config.load(file if file.is_file() else None).train.threads
        process = await _spawn(arguments, log, threads)
        client = cls(process, log)
        try:
            ready = await client._read()
        except BaseException:
            await client.close()
            raise
        client.step, client.version = ready["step"], ready["version"]
        client.note = ready["note"]
        return client

    async def publish(self) -> PublishedAdapter:
        """The current version's adapter; version 0 is the untrained one."""
        answer = await self._ask({"op": "publish"})
        return PublishedAdapter(answer["adapter"], Path(answer["path"]), answer["version"])

    async def update(self, step: int, rollouts: Sequence[str]) -> UpdateResult:
        """Train on rollouts (by id) of the run's store. Asking again for a step is harmless."""
        answer = await self._ask({"op": "update", "step": step, "rollouts": list(rollouts)})
        return UpdateResult(
            step, answer["adapter"], Path(answer["path"]), answer["version"], answer["metrics"]
        )

    async def logprobs(
        self, pairs: Sequence[tuple[list[int], list[int]]], adapter: Path | None = None
    ) -> list[list[float]]:
        """Log-probabilities of outputs given prompts, under an adapter or the base (None)."""
        request = {
            "op": "logprobs",
            "pairs": [list(pair) for pair in pairs],
            "adapter": None if adapter is None else str(adapter),
        }
        answer: list[list[float]] = (await self._ask(request))["logprobs"]
        return answer

    async def close(self) -> None:
        """End the process; an update in progress is lost unless it was checkpointed."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), timeout=2)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        async with self._lock:
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                await self._process.stdin.drain()
            except (BrokenPipeError, ConnectionResetError):
                raise await _death(self._process, self._log) from None
            try:
                return await self._read()
            except asyncio.CancelledError:
                self._process.kill()  # its answer would be taken for the next request's
                raise

    async def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise await _death(self._process, self._log)
        answer: dict[str, Any] = json.loads(line)
        if not answer["ok"]:
            raise LearnerError(answer["error"])
        return answer


async def warm_start_in_process(
    run_dir: Path,
    model_dir: Path,
    out: Path,
    *,
    settings: WarmStartSettings,
    rollout_ids: Sequence[str],
    on_step: Callable[[int, float], None] | None = None,
    threads: int = 2,
    save_at: Sequence[int] = (),
    dtype: str = "bfloat16",
    device: str = "auto",
    token_budget: int = 2048,
    trust_remote_code: bool = False,
) -> dict[str, Any]:
    """Warm-start on rollouts of the store in `run_dir`, in a process of its own, into `out`.

    The same ids in the same order give the same weights. `on_step` gets each step (from 1) and its
    loss. Returns the process's last line: `path`, `losses`, `snapshots` (`out-s<step>` for each of
    `save_at`), `demonstrations`, `note`. Raises LearnerError. Cancelling ends the process.
    """
    log = run_dir / "warm-start.log"
    process = await _spawn(["harness_adapters.learner.warm_start_process"], log, threads)
    request = {
        "run_dir": str(run_dir),
        "model_dir": str(model_dir),
        "out": str(out),
        "settings": settings.model_dump(),
        "rollouts": list(rollout_ids),
        "threads": threads,
        "save_at": list(save_at),
        "dtype": dtype,
        "device": device,
        "token_budget": token_budget,
        "trust_remote_code": trust_remote_code,
    }
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        async for line in process.stdout:
            record: dict[str, Any] = json.loads(line)
            if "ok" in record:
                if not record["ok"]:
                    raise LearnerError(record["error"])
                await process.wait()
                return record
            if on_step:
                on_step(record["step"], record["loss"])
        raise await _death(process, log)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _spawn(arguments: list[str], log: Path, threads: int) -> asyncio.subprocess.Process:
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *arguments, "--parent", str(os.getpid()),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
            env=environment, limit=LINE_LIMIT, start_new_session=True,
        )  # fmt: skip
    set_back(process.pid, LEARNER)
    return process


async def _death(process: asyncio.subprocess.Process, log: Path) -> LearnerError:
    status = await process.wait()
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    last = lines[-1] if lines else "no output"
    return LearnerError(f"the learner ended with status {status}: {last} (see {log})")
