"""Control groups: limits on memory and processes, one kill for all, and what was used.

Works with cgroup v2 where a parent may be used (root, or a delegated subtree), and with the
hybrid layout (v1 controllers beside an empty v2 tree). Where neither can be used there is no
group, and a sandbox falls back on its pid namespace and resource limits.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.sandbox.contract import Limits, Usage

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "harness-adapters-"


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """The directories in which groups can be made on this machine; None where they can't."""

    unified: Path | None
    """cgroup v2: kill and CPU time."""
    memory: Path | None
    processes: Path | None

    @property
    def version(self) -> str:
        """`v2`, `hybrid` (limits by v1) or `none`."""
        if self.memory is None and self.processes is None:
            return "none"
        return "v2" if self.memory == self.unified else "hybrid"


def hierarchy() -> Hierarchy:
    """Look where this process may make groups. Changes nothing but enabled controllers."""
    own = _own_paths()
    if (_ROOT / "cgroup.controllers").exists():
        parent = _v2_parent(own.get("", "/"))
        return Hierarchy(parent, parent, parent)
    return Hierarchy(
        _v1_parent("unified", own.get("", "/")),
        _v1_parent("memory", own.get("memory", "/")),
        _v1_parent("pids", own.get("pids", "/")),
    )


def _own_paths() -> dict[str, str]:
    """This process's group by controller; that of cgroup v2 under the empty name."""
    paths = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _v1_parent(mount: str, own: str) -> Path | None:
    # In a container the path may be the host's, of which only the mount's top is visible.
    for candidate in (_ROOT / mount / own.lstrip("/"), _ROOT / mount):
        if (candidate / "cgroup.procs").exists() and os.access(candidate, os.W_OK):
            return candidate
    return None


def _v2_parent(own: str) -> Path | None:
    """The nearest ancestor that can hand memory and pids on: one with no processes of its own."""
    place = _ROOT / own.lstrip("/")
    for candidate in (place, *place.parents):
        if candidate == _ROOT.parent:
            return None
        if not os.access(candidate, os.W_OK):
            continue
        with contextlib.suppress(OSError):
            enabled = (candidate / "cgroup.subtree_control").read_text().split()
            missing = [name for name in ("memory", "pids") if name not in enabled]
            if missing:
                control = " ".join(f"+{name}" for name in missing)
                (candidate / "cgroup.subtree_control").write_text(control)
            return candidate
    return None


class Cgroup:
    """One sandbox's group in every hierarchy that can be used."""

    def __init__(self, name: str, limits: Limits, where: Hierarchy) -> None:
        self._unified = where.unified and where.unified / f"{_PREFIX}{name}"
        self._memory = where.memory and where.memory / f"{_PREFIX}{name}"
        self._processes = where.processes and where.processes / f"{_PREFIX}{name}"
        parts = (self._unified, self._memory, self._processes)
        self._directories = list(dict.fromkeys(part for part in parts if part))
        try:
            for directory in self._directories:
                directory.mkdir()
            self._limit(limits)
        except OSError:
            self.remove()
            raise

    def _limit(self, limits: Limits) -> None:
        size = str(limits.memory_mb << 20)
        if self._memory and (self._memory / "memory.max").exists():
            (self._memory / "memory.max").write_text(size)
            with contextlib.suppress(OSError):  # no swap on this machine
                (self._memory / "memory.swap.max").write_text("0")
        elif self._memory:
            (self._memory / "memory.limit_in_bytes").write_text(size)
            with contextlib.suppress(OSError):  # no swap accounting on this machine
                (self._memory / "memory.memsw.limit_in_bytes").write_text(size)
        if self._processes:
            (self._processes / "pids.max").write_text(str(limits.processes))

    @property
    def limits_memory(self) -> bool:
        """Whether the group limits memory."""
        return self._memory is not None

    @property
    def limits_processes(self) -> bool:
        """Whether the group limits the number of processes."""
        return self._processes is not None

    def add(self, pid: int) -> None:
        """Move one process, and so all its future children, into the group."""
        for directory in self._directories:
            (directory / "cgroup.procs").write_text(str(pid))

    def kill(self) -> None:
        """Send SIGKILL to all members; returns at once."""
        if self._unified:
            with contextlib.suppress(OSError):  # before Linux 5.14; the pid namespace does it
                (self._unified / "cgroup.kill").write_text("1")

    def usage(self) -> Usage:
        """CPU time and peak memory since the group was made."""
        cpu = peak = None
        oom = False
        if self._unified:
            with contextlib.suppress(OSError, KeyError):
                cpu = _table(self._unified / "cpu.stat")["usage_usec"] / 1e6
        if self._memory:
            v2 = self._memory == self._unified
            with contextlib.suppress(OSError):  # memory.peak: since Linux 5.19
                name = "memory.peak" if v2 else "memory.max_usage_in_bytes"
                peak = int((self._memory / name).read_text()) / 2**20
            with contextlib.suppress(OSError):
                events = _table(self._memory / ("memory.events" if v2 else "memory.oom_control"))
                oom = events.get("oom_kill", 0) > 0
        return Usage(cpu, peak, oom)

    def remove(self) -> None:
        """Remove the group; its last members may still be dying."""
        for directory in self._directories:
            for _ in range(200):
                try:
                    directory.rmdir()
                except OSError as error:
                    if error.errno == errno.EBUSY:
                        time.sleep(0.005)
                        continue
                break


def clean_groups() -> int:
    """Remove groups that sandboxes of processes that are gone left behind."""
    removed = 0
    where = hierarchy()
    for parent in {where.unified, where.memory, where.processes} - {None}:
        assert parent is not None
        for group in parent.glob(f"{_PREFIX}*"):
            pid = group.name.removeprefix(_PREFIX).split("-")[1:2]
            if pid and pid[0].isdigit() and not Path(f"/proc/{pid[0]}").exists():
                with contextlib.suppress(OSError):
                    group.rmdir()
                    removed += 1
    return removed


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
