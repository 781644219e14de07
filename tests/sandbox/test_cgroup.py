from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness_adapters.sandbox import Limits
from harness_adapters.sandbox.cgroup import Cgroup, Hierarchy, clean_groups, hierarchy


def test_this_machines_groups() -> None:
    where = hierarchy()
    if where.version == "none":
        pytest.skip("no cgroup can be made here")
    group = Cgroup(f"test-{os.getpid()}-1", Limits(memory_mb=100, processes=7), where)
    child = subprocess.Popen(["sleep", "60"])
    try:
        group.add(child.pid)
        assert f"test-{os.getpid()}-1" in Path(f"/proc/{child.pid}/cgroup").read_text()
        if where.unified is not None:
            group.kill()
            assert child.wait(timeout=10) == -9
    finally:
        child.kill()
        child.wait()
        group.remove()
    for parent in (where.unified, where.memory, where.processes):
        assert parent is None or not list(parent.glob(f"*test-{os.getpid()}-1"))


def test_groups_of_dead_processes_are_removed() -> None:
    where = hierarchy()
    if where.version == "none":
        pytest.skip("no cgroup can be made here")
    gone = subprocess.Popen(["true"])
    gone.wait()
    Cgroup(f"box-{gone.pid}-ab", Limits(), where)
    mine = Cgroup(f"box-{os.getpid()}-ab", Limits(), where)
    try:
        assert clean_groups() >= 1
        parents = [parent for parent in (where.memory, where.processes) if parent]
        left = {entry.name for parent in parents for entry in parent.glob("harness-adapters-*-ab")}
        assert left == {f"harness-adapters-box-{os.getpid()}-ab"}
    finally:
        mine.remove()


def test_the_v2_files_get_the_limits(tmp_path: Path) -> None:
    # On plain files: it shows which number goes where on machines with the other layout.
    made = tmp_path / "harness-adapters-box"

    class V2(Cgroup):
        def _limit(self, limits: Limits) -> None:
            (made / "memory.max").touch()
            super()._limit(limits)

    group = V2("box", Limits(memory_mb=3, processes=5), Hierarchy(tmp_path, tmp_path, tmp_path))
    assert (made / "memory.max").read_text() == str(3 << 20)
    assert (made / "memory.swap.max").read_text() == "0"
    assert (made / "pids.max").read_text() == "5"
    (made / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    (made / "memory.peak").write_text("2097152\n")
    (made / "memory.events").write_text("oom 1\noom_kill 1\n")
    usage = group.usage()
    assert (usage.cpu_seconds, usage.peak_mb, usage.oom) == (1.5, 2.0, True)
    group.add(12345)
    assert (made / "cgroup.procs").read_text() == "12345"
