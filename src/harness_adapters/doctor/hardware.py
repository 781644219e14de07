"""Cores, memory, disk, accelerator."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from harness_adapters.doctor.check import Check, Importance
from harness_adapters.paths import data_dir, scratch_dir

CORES = 2
MEMORY_GIB = 8.0
"""Engine, learner and 16 small sessions of the quickstart at once, with room to spare."""
DISK_GIB = 5.0
"""pi with its node, the embedded model as 16-bit weights, a warm-started copy of it, one run."""
SHARED_MEMORY_GIB = 1.0


def check_cores() -> Check:
    """Cores that this process may use."""
    cores = len(os.sched_getaffinity(0))
    return Check(
        "cores",
        cores >= CORES,
        f"{cores} usable",
        "" if cores >= CORES else "one core serves and trains in turn: expect twice the time",
        Importance.WISHED,
    )


def available_memory_gib(
    meminfo: Path = Path("/proc/meminfo"), cgroup: Path = Path("/sys/fs/cgroup")
) -> float:
    """Memory that can be had now: what the kernel says, capped by this container's limit."""
    available = 0.0
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            available = int(line.split()[1]) / 2**20
    try:
        limit = (cgroup / "memory.max").read_text().strip()
        used = int((cgroup / "memory.current").read_text())
    except (OSError, ValueError):
        return available
    if limit == "max":
        return available
    return min(available, (int(limit) - used) / 2**30)


def check_memory() -> Check:
    """Free memory."""
    free = available_memory_gib()
    return Check(
        "memory",
        free >= MEMORY_GIB,
        f"{free:.1f} GiB free",
        ""
        if free >= MEMORY_GIB
        else f"{MEMORY_GIB:.0f} GiB are comfortable: end other programs, or lower "
        "`engine.kv_cache_gib` and `concurrency`",
        Importance.WISHED,
    )


def check_disk(directory: Path | None = None) -> Check:
    """Free space where harnesses and models are installed."""
    directory = directory or data_dir()
    existing = next(path for path in (directory, *directory.parents) if path.exists())
    free = shutil.disk_usage(existing).free / 2**30
    writable = os.access(existing, os.W_OK)
    if not writable:
        remedy = f"{existing} is not writable: set HARNESS_ADAPTERS_HOME to a folder that is"
    elif free < DISK_GIB:
        remedy = f"free {DISK_GIB - free:.1f} GiB more, or set HARNESS_ADAPTERS_HOME elsewhere"
    else:
        remedy = ""
    return Check("disk", not remedy, f"{free:.1f} GiB free in {directory}", remedy)


def check_scratch(shared: Path = Path("/dev/shm")) -> Check:
    """Memory-backed room for the sessions' workspaces."""
    if not os.access(shared, os.W_OK):
        return Check(
            "scratch space",
            False,
            f"{shared} is not writable; sessions use {scratch_dir()}",
            f"mount a tmpfs at {shared}: sessions start faster in memory",
            Importance.WISHED,
        )
    free = shutil.disk_usage(shared).free / 2**30
    return Check(
        "scratch space",
        free >= SHARED_MEMORY_GIB,
        f"{free:.1f} GiB free in {shared}",
        ""
        if free >= SHARED_MEMORY_GIB
        else f"enlarge it: mount -o remount,size=2G {shared} (containers: --shm-size=2g)",
        Importance.WISHED,
    )


def check_accelerator() -> Check:
    """An NVIDIA GPU, if there is one; its absence is no fault."""
    if shutil.which("nvidia-smi") is None:
        return Check("GPU", True, "none; everything runs on the CPU")
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return Check("GPU", False, "nvidia-smi hangs", "reset the GPU's driver", Importance.WISHED)
    if result.returncode != 0 or not result.stdout.strip():
        first = (result.stdout + result.stderr).strip().splitlines() or ["it says nothing"]
        return Check(
            "GPU",
            False,
            f"nvidia-smi: {first[0]}",
            "mend the driver; until then everything runs on the CPU",
            Importance.WISHED,
        )
    return Check("GPU", True, "; ".join(result.stdout.strip().splitlines()))


def gpu_memory_gib() -> float | None:
    """Memory of the smallest GPU, None where nvidia-smi is missing or finds none."""
    if shutil.which("nvidia-smi") is None:
        return None
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    try:
        result = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return None
    sizes = [int(line) / 1024 for line in result.stdout.split() if line.isdigit()]
    return min(sizes, default=None)
