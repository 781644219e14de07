from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from harness_adapters.sandbox import (
    BwrapSandbox,
    ExecResult,
    Serve,
    Verification,
    check_machine,
    verify,
)

VALUE_TEST = """\
mkdir -p /logs/verifier
if [ "$(cat /app/answer.txt 2>/dev/null)" = "$(cat /tests/expected.txt)" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
"""A verifier of one file's content."""


@pytest.fixture(scope="session")
def machine() -> None:
    problems = check_machine()
    if problems:
        pytest.skip("; ".join(f"{problem.what}: {problem.fix}" for problem in problems))


@pytest.fixture
def lower(tmp_path: Path, machine: None) -> Path:
    """A task's files, in a directory that only its owner can enter."""
    root = tmp_path / "files"
    root.mkdir()
    root.parent.chmod(0o700)
    (root / "data.txt").write_text("one\ntwo\n")
    (root / "old.txt").write_text("old\n")
    (root / "sub").mkdir()
    (root / "sub" / "inner.txt").write_text("inner\n")
    return root


async def sh(box: BwrapSandbox, script: str, timeout: float = 20.0) -> ExecResult:
    return await box.exec(["/bin/bash", "-c", script], env={}, timeout=timeout)


async def out(box: BwrapSandbox, script: str) -> str:
    """What a script prints; it must succeed."""
    result = await sh(box, script)
    assert result.returncode == 0, result
    return result.stdout.decode()


def answering(text: str, seen: list[str] | None = None) -> Serve:
    """A server that answers every line it gets by `text`."""

    async def serve(listener: object) -> Callable[[], Awaitable[None]]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            line = await reader.readline()
            if seen is not None:
                seen.append(line.decode().strip())
            writer.write(text.encode() + b"\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, sock=listener)  # type: ignore[arg-type]

        async def stop() -> None:
            server.close()
            await server.wait_closed()
            if seen is not None:
                seen.append("stopped")

        return stop

    return serve


async def score(
    lower: Path,
    tests: Path,
    script: str,
    *,
    extra: Sequence[Path] = (),
    timeout: float = 20.0,
) -> Verification:
    """An agent that runs `script`, then its verification."""
    async with BwrapSandbox([lower, *extra]) as box:
        await sh(box, script)
        frozen = box.freeze()
    with frozen:
        return await verify(frozen, lowers=[lower, *extra], tests=tests, timeout=timeout)
