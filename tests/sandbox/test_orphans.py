"""A sandbox ends with the process that started it, at whatever moment that one is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_RUNNER = """
import asyncio, os, sys
from harness_adapters.sandbox import BwrapSandbox
from harness_adapters.sandbox.process import Process

moment, seconds = sys.argv[1], sys.argv[2]

def killed(*_):
    os.kill(os.getpid(), 9)

async def main():
    async with BwrapSandbox([]) as box:
        if moment == "spawned":  # before bwrap has been reached at all
            spawn = Process.spawn
            Process.spawn = lambda *a, **k: (spawn(*a, **k), killed())
        elif moment == "held":  # namespaces made, the command not released
            Process.release = killed
        else:
            asyncio.get_running_loop().call_later(0.5, killed)
        await box.exec(["/bin/sleep", seconds], env={}, timeout=60)

asyncio.run(main())
"""


def _alive(word: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if word in line:
                found.append(line)
    return found


@pytest.mark.parametrize("moment", ["spawned", "held", "running"])
def test_nothing_outlives_a_killed_runner(moment: str, machine: None) -> None:
    mark = f"{7_000_000 + os.getpid()}.{ord(moment[0])}"  # only this test sleeps that long
    ended = subprocess.run(
        [sys.executable, "-c", _RUNNER, moment, mark],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    deadline = time.monotonic() + 5
    while _alive(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(mark)
