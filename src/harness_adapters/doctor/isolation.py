"""Sandboxes: tools, bubblewrap, user namespaces, overlays, control groups, and one real sandbox."""

from __future__ import annotations

import asyncio
import shutil

from harness_adapters.doctor.check import Check, Importance
from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import Isolation, check_machine, isolation, probe

TOOLS = ("setpriv", "prlimit", "bash", "git")
"""Drop privileges, limit a process, run tools' commands; git is what agents and tasks expect."""


def check_tools() -> Check:
    """Programs of the system that every session uses."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    packages = sorted({"util-linux" if t in ("setpriv", "prlimit") else t for t in missing})
    return Check(
        "system tools",
        not missing,
        f"missing: {', '.join(missing)}" if missing else ", ".join(TOOLS),
        f"apt-get install {' '.join(packages)}" if missing else "",
    )


def check_sandbox() -> list[Check]:
    """What keeps sandboxes from working, each with its remedy; else what one real one showed."""
    problems = check_machine()
    if problems:
        return [Check("sandbox", False, problem.what, problem.fix) for problem in problems]
    try:
        seconds = asyncio.run(probe())
        here = isolation()
    except SandboxError as error:
        return [Check("sandbox", False, str(error), "see docs/sandbox.md")]
    detail = (
        f"{here.bwrap}, overlays in {here.scratch}, user id {here.uid}; one took {seconds:.2f} s"
    )
    return [Check("sandbox", True, detail), _limits(here)]


def _limits(here: Isolation) -> Check:
    whole = here.memory_limit == here.process_limit == "cgroup"
    return Check(
        "limits",
        whole,
        f"control groups {here.cgroups}; memory by {here.memory_limit}, "
        f"processes by {here.process_limit}; seccomp {'on' if here.seccomp else 'off'}",
        ""
        if whole
        else "limits hold for each process, not for a session as a whole: run as root, "
        "or in a scope of your own (systemd-run --user --scope -p Delegate=yes ...)",
        Importance.WISHED,
    )
