"""What sandboxes cost on this machine: `python -m harness_adapters.sandbox.measure`.

Times making one, running `true` in it and removing it, one after the other and many at once.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

from harness_adapters.sandbox.box import BwrapSandbox
from harness_adapters.sandbox.contract import Frozen
from harness_adapters.sandbox.verify import verify


async def _session(lower: Path) -> tuple[float, float, float]:
    """Seconds to make, to run `true` in, and to remove one sandbox."""
    started = time.perf_counter()
    async with BwrapSandbox([lower]) as box:
        made = time.perf_counter()
        result = await box.exec(["/bin/true"], env={}, timeout=30)
        assert result.returncode == 0
        ran = time.perf_counter()
    return made - started, ran - made, time.perf_counter() - ran


async def _verification(lower: Path, tests: Path) -> float:
    """Seconds for an agent's sandbox, its freeze and its verification."""
    started = time.perf_counter()
    async with BwrapSandbox([lower]) as box:
        await box.exec(["/bin/bash", "-c", "echo 42 > answer"], env={}, timeout=30)
        frozen: Frozen = box.freeze()
    with frozen:
        verdict = await verify(frozen, lowers=[lower], tests=tests, timeout=30)
    assert verdict.score == 1.0, verdict
    return time.perf_counter() - started


async def _measure(rounds: int = 40, parallel: int = 16) -> None:
    with tempfile.TemporaryDirectory() as name:
        lower, tests = Path(name, "lower"), Path(name, "tests")
        for directory in (lower, tests):
            directory.mkdir()
        (lower / "data.txt").write_text("data\n")
        script = "[ $(cat answer) = 42 ]; echo $((1 - $?)) > /logs/verifier/reward.txt"
        (tests / "test.sh").write_text(script)
        parts = [await _session(lower) for _ in range(rounds)]
        make, run, remove = (statistics.median(column) * 1e3 for column in zip(*parts, strict=True))
        total = statistics.median(map(sum, parts)) * 1e3
        print(f"one by one: {total:.1f} ms (make {make:.1f}, exec {run:.1f}, remove {remove:.1f})")
        started = time.perf_counter()
        batches = [
            part
            for _ in range(rounds // 8)
            for part in await asyncio.gather(*(_session(lower) for _ in range(parallel)))
        ]
        seconds = time.perf_counter() - started
        total = statistics.median(map(sum, batches)) * 1e3
        print(f"{parallel} at once: {total:.1f} ms each, {len(batches) / seconds:.0f} per second")
        whole = [await _verification(lower, tests) for _ in range(rounds // 2)]
        print(f"agent, freeze, verify: {statistics.median(whole) * 1e3:.1f} ms")


if __name__ == "__main__":
    asyncio.run(_measure())
