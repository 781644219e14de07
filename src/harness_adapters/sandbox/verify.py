"""Scoring a frozen workspace in a second, fresh sandbox."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox.box import BwrapSandbox
from harness_adapters.sandbox.contract import Bind, Frozen, Limits
from harness_adapters.sandbox.process import to_the_end
from harness_adapters.sandbox.reward_file import read_reward
from harness_adapters.sandbox.scratch import State, new_state, sandbox_uid, scratch_root
from harness_adapters.sandbox.trees import copy_tree, remove_tree

_TAIL = 64 << 10

_GIT_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.pager": "cat",
    "core.sshCommand": "/bin/false",
}

HARDENED_ENV: Mapping[str, str] = {
    "HOME": "/nonexistent",
    "PYTHONSAFEPATH": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)),
    **{f"GIT_CONFIG_KEY_{n}": key for n, key in enumerate(_GIT_SETTINGS)},
    **{f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(_GIT_SETTINGS.values())},
}
"""Keeps programs of the verifier from loading code or configuration out of the workspace."""


CANDIDATE = "/opt/candidate"
"""Where the verifier finds what gives it the agent's modules at arm's length."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verifier said about one workspace."""

    score: float | None
    """In [0, 1]; None when there is no valid reward: such a rollout is excluded, not 0."""
    output: str
    """The end of what it printed, at most 64 KiB of each stream."""
    seconds: float
    error: str
    """Why there is no score; empty when there is one."""
    timed_out: bool = False
    """Whether it ran out of time: a broken verifier does, and so does a sound one on a workspace
    in which what it runs never ends."""


async def verify(
    frozen: Frozen,
    *,
    lowers: Sequence[Path],
    tests: Path,
    workdir: str = "/app",
    command: Sequence[str] = ("/bin/bash", "/tests/test.sh"),
    timeout: float,
    env: Mapping[str, str] | None = None,
    limits: Limits | None = None,
    scratch: Path | None = None,
    confined: Sequence[str] = (),
) -> Verification:
    """Run a task's tests on `lowers` below the frozen layer; neither is changed.

    `tests` is at /tests, read-only; /logs/verifier takes the reward. No network, no home, nothing
    of the agent's sandbox but its working directory. The reward is read when every process is
    dead. `env` is the task author's and may override the hardened environment.

    Modules named in `confined` are the agent's: Python tests that import them get stand-ins, and
    the code runs in a child that sees the working directory and the system alone
    (`sandbox/candidate`). Raises SandboxError only when the sandbox itself could not run.
    """
    started = time.monotonic()
    uid = sandbox_uid()
    state = new_state(scratch_root(scratch, uid), State.VERIFY)
    try:
        await asyncio.to_thread(_prepare, state, tests, uid)
        binds = [Bind(state / "tests", "/tests"), Bind(state / "logs", "/logs/verifier", True)]
        settings = {**HARDENED_ENV, **(env or {})}
        if confined:
            await asyncio.to_thread(_add_candidate, state / "candidate")
            binds.append(Bind(state / "candidate", CANDIDATE))
            settings |= {
                "PYTHONPATH": f"{CANDIDATE}:{settings.get('PYTHONPATH', '')}".rstrip(":"),
                "CONFINED_MODULES": ",".join(confined),
                "CONFINED_WORKDIR": workdir,
            }
        box = BwrapSandbox(
            [*lowers, frozen.layer], workdir, binds=binds, limits=limits, scratch=scratch
        )
        async with box:
            result = await box.exec(command, env=settings, timeout=timeout)
        score, problem = None, f"the verifier ran longer than {timeout:g} seconds"
        if not result.timed_out:
            try:
                score, problem = read_reward(state / "logs"), ""
            except SandboxError as error:
                problem = f"{error} (exit code {result.returncode})"
    finally:
        await to_the_end(asyncio.to_thread(remove_tree, state))
    output = b"\n".join(part[-_TAIL:] for part in (result.stdout, result.stderr) if part)
    return Verification(
        score,
        output.decode(errors="replace"),
        time.monotonic() - started,
        problem,
        result.timed_out,
    )


def _prepare(state: Path, tests: Path, uid: int) -> None:
    if not tests.is_dir():
        raise SandboxError(f"tests directory {tests} is missing")
    try:
        state.mkdir(mode=0o711)
        copy_tree(tests, state / "tests", uid)
        (state / "logs").mkdir(mode=0o700)
        os.chown(state / "logs", uid, uid)
    except OSError as error:
        raise SandboxError(f"can't prepare a verifier in {state}: {error}") from None


def _add_candidate(place: Path) -> None:
    """Put the stand-ins and the confinement into a directory of the verifier's sandbox."""
    package = files("harness_adapters")
    confinement = package / "tasks" / "starter" / "checkers" / "confined.py"
    try:
        place.mkdir(mode=0o755)
        for source in (*(package / "sandbox" / "candidate").iterdir(), confinement):
            if source.name.endswith(".py") and source.name != "__init__.py":
                (place / source.name).write_bytes(source.read_bytes())
                (place / source.name).chmod(0o644)
    except OSError as error:
        raise SandboxError(f"can't prepare a verifier in {place}: {error}") from None
