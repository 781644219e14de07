"""What this machine can isolate: checks for `doctor`, a report, and a real probe."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import command, seccomp
from harness_adapters.sandbox.box import BwrapSandbox
from harness_adapters.sandbox.cgroup import clean_groups, hierarchy
from harness_adapters.sandbox.scratch import (
    State,
    clean_scratch,
    sandbox_uid,
    scratch_root,
    temporary_state,
)

_ROOM_MB = 512
_CAP_SYS_RESOURCE = 1 << 24


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps sandboxes from working here."""

    what: str
    fix: str
    """What to do, in one line."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """What is in force in every sandbox on this machine."""

    uid: int
    """Of sandboxed processes, as the host sees it."""
    cgroups: str
    """`v2`, `hybrid`, or `none`: then limits hold for each process, not for all together."""
    memory_limit: str
    process_limit: str
    seccomp: bool
    nested_user_namespaces: bool
    """Whether sandboxed processes may make user namespaces of their own."""
    scratch: Path
    bwrap: Path


def isolation() -> Isolation:
    """What is in force here. Raises SandboxError where no sandbox is possible."""
    uid = sandbox_uid()
    groups = hierarchy()
    return Isolation(
        uid=uid,
        cgroups=groups.version,
        memory_limit="cgroup" if groups.memory else "RLIMIT_DATA",
        process_limit="cgroup" if groups.processes else _process_fallback(),
        seccomp=seccomp.program() is not None,
        nested_user_namespaces=not Path("/proc/sys/user/max_user_namespaces").exists(),
        scratch=scratch_root(None, uid),
        bwrap=command.find_bwrap(),
    )


def _process_fallback() -> str:
    status = Path("/proc/self/status").read_text()
    effective = int(status.split("\nCapEff:\t")[1].split("\n")[0], 16)
    return "RLIMIT_NPROC" if os.geteuid() != 0 or effective & _CAP_SYS_RESOURCE else "none"


def check_machine() -> list[Problem]:
    """All that keeps sandboxes from working here, each with what to do; empty when they do."""
    try:
        uid = sandbox_uid()
        root = scratch_root(None, uid)
        bwrap = command.reachable_bwrap(uid, root / "bin")
        prefix = command.resource_limits(file_mb=64, data_mb=None)
        prefix += command.drop_privileges(uid)
    except SandboxError as error:
        what, _, fix = str(error).partition(": ")
        return [Problem(what, fix or "see docs/sandbox.md")]
    problems = []
    free = shutil.disk_usage(root).free >> 20
    if free < _ROOM_MB:
        fix = f"free some, or enlarge it (containers: --shm-size); {_ROOM_MB} MB are wanted"
        problems.append(Problem(f"{root} has only {free} MB left", fix))
    start = [*prefix, str(bwrap), "--unshare-user", "--unshare-pid", "--unshare-net"]
    usual = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    if complaint := _try([*start, *usual, "/bin/true"]):
        return [*problems, Problem(f"user namespaces: {complaint}", _namespace_fix())]
    with temporary_state(State.CHECK) as place:
        for part in ("lower", "upper", "work"):
            (place / part).mkdir()
            os.chown(place / part, uid, uid)
        layers = ["--overlay-src", str(place / "lower")]
        layers += ["--overlay", str(place / "upper"), str(place / "work"), "/mnt"]
        complaint = _try([*start, *usual, *layers, "/bin/touch", "/mnt/file"])
    if complaint:
        fix = f"overlays in user namespaces need Linux 5.11 and a tmpfs, ext4 or xfs at {root}"
        problems.append(Problem(f"overlay: {complaint}", fix))
    return problems


def _try(argv: list[str]) -> str:
    """Run a command; what it complained about, empty when all went well."""
    try:
        done = subprocess.run(argv, capture_output=True, timeout=20, env={}, cwd="/")
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def _namespace_fix() -> str:
    """The setting of this kernel that forbids user namespaces, if one can be seen."""
    for name, forbidding, setting in (
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1",
         "kernel.apparmor_restrict_unprivileged_userns=0"),
        ("user/max_user_namespaces", "0", "user.max_user_namespaces=15000"),
    ):  # fmt: skip
        try:
            value = Path("/proc/sys", name).read_text().strip()
        except OSError:
            continue
        if value == forbidding:
            return f"allow them: sudo sysctl -w {setting}"
    return "in a container, start it with --security-opt seccomp=unconfined (or --privileged)"


def clean_leftovers() -> int:
    """Remove the state and the groups of sandboxes whose process was killed; how many."""
    return clean_scratch() + clean_groups()


async def probe() -> float:
    """Run one real sandbox end to end; seconds it took. Raises SandboxError when it fails."""
    started = time.monotonic()
    with temporary_state(State.PROBE) as lower:
        (lower / "old").write_text("old\n")
        async with BwrapSandbox([lower]) as box:
            script = "cat old && rm old && echo new > new && id -u"
            result = await box.exec(["/bin/bash", "-c", script], env={}, timeout=20)
            if result.stdout != f"old\n{command.UID}\n".encode():
                last = result.stderr.decode(errors="replace").strip()[-200:]
                raise SandboxError(f"the probe failed with {result.returncode}: {last}")
            with box.freeze() as frozen:
                if sorted(entry.name for entry in frozen.layer.iterdir()) != ["new", "old"]:
                    raise SandboxError("the probe's overlay lost a change: run doctor")
    return time.monotonic() - started
