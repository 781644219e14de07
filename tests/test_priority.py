"""The learner yields the processor; agents are sessions of their own, and have no terminal."""

import os
import subprocess
from pathlib import Path

import pytest

from harness_adapters.priority import LEARNER, set_back
from harness_adapters.sandbox import BwrapSandbox


def test_a_session_is_set_back_with_all_it_starts() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        set_back(child.pid, LEARNER)
        assert os.getpriority(os.PRIO_PROCESS, child.pid) == LEARNER
        group = Path(f"/proc/{child.pid}/autogroup")
        if not group.exists():
            pytest.skip("this kernel has no autogroups")
        if os.geteuid() == 0:  # others may write one a tenth of a second
            assert group.read_text().endswith(f"nice {LEARNER}\n")
    finally:
        child.kill()
        child.wait()


def test_a_process_that_is_gone_is_no_error() -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    set_back(child.pid, LEARNER)


async def test_a_sandbox_is_a_session_of_its_own_without_a_terminal(tmp_path: Path) -> None:
    # /proc/self/autogroup names the group: another than ours, or all sandboxes shared one weight.
    script = "nice; cat /proc/self/autogroup 2>/dev/null; (: </dev/tty) 2>/dev/null || echo no tty"
    async with BwrapSandbox([tmp_path]) as box:
        result = await box.exec(["/bin/bash", "-c", script], env={}, timeout=20)
    lines = result.stdout.decode().splitlines()
    assert lines[0] == str(os.nice(0))
    assert lines[-1] == "no tty"
    own = Path("/proc/self/autogroup")
    if len(lines) == 3 and own.exists():
        # Empty where our own processes share the machine's root group.
        assert lines[1].split()[:1] != own.read_text().split()[:1]
