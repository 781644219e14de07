from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_adapters.doctor import Check, Importance
from harness_adapters.doctor.hardware import (
    available_memory_gib,
    check_accelerator,
    check_cores,
    check_disk,
    check_memory,
    check_scratch,
)


def test_only_a_failed_needed_check_blocks() -> None:
    assert Check("a", False, "bad", "mend it").blocks
    assert not Check("a", True, "good").blocks
    assert not Check("a", False, "bad", "mend it", Importance.WISHED).blocks


def test_cores_are_those_this_process_may_use() -> None:
    mine = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(mine)})
        check = check_cores()
    finally:
        os.sched_setaffinity(0, mine)
    assert check.detail == "1 usable"
    assert not check.ok
    assert not check.blocks


def test_memory_is_capped_by_the_containers_limit(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 25165824 kB\nMemAvailable: 12582912 kB\n")
    assert available_memory_gib(meminfo, tmp_path) == 12.0
    (tmp_path / "memory.current").write_text(f"{1 << 30}\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory_gib(meminfo, tmp_path) == 12.0
    (tmp_path / "memory.max").write_text(f"{4 << 30}\n")
    assert available_memory_gib(meminfo, tmp_path) == 3.0


def test_this_machines_memory_reads_as_a_number() -> None:
    check = check_memory()
    assert float(check.detail.split()[0]) > 0


def test_disk_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    check = check_disk(tmp_path / "not" / "yet")
    assert str(tmp_path / "not" / "yet") in check.detail
    assert check.ok == (not check.remedy)
    assert not (tmp_path / "not").exists()


def test_disk_that_may_not_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    check = check_disk(tmp_path / "data")
    assert check.blocks
    assert "HARNESS_ADAPTERS_HOME" in check.remedy


def test_scratch_space_without_a_tmpfs(tmp_path: Path) -> None:
    check = check_scratch(tmp_path / "missing")
    assert not check.ok
    assert "tmpfs" in check.remedy
    assert not check.blocks


def fake_program(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_no_gpu_is_no_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_accelerator().ok


def test_gpu_is_named_and_a_broken_driver_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    fake_program(tmp_path, "nvidia-smi", "echo 'NVIDIA X, 80000 MiB'; echo 'NVIDIA X, 80000 MiB'")
    assert check_accelerator().detail == "NVIDIA X, 80000 MiB; NVIDIA X, 80000 MiB"
    fake_program(tmp_path, "nvidia-smi", "echo 'no driver' >&2; exit 9")
    broken = check_accelerator()
    assert not broken.ok
    assert "no driver" in broken.detail
