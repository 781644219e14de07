"""V8 code of a node program, compiled once: a fifth of a short pi session's time (0.61 to 0.49 s).

Node keeps compiled code by file path and user id (`module.enableCompileCache` in its docs). A
directory that sessions could write would let one put code into another's agent, so a trusted
run fills it at install time, and sessions see it read-only with everything else of the install.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.harness import HOME, Launch
from harness_adapters.sandbox.command import UID, find_bwrap


def warm(name: str, launch: Launch, cache: Path, *, mark: bytes) -> str:
    """Fill `cache` by a session in a namespace without network; returns a line for people.

    `launch` has the paths that sessions have (the cache's keys) and `cache` lies below one of its
    binds. The run went well if `mark` is in its output; where it fails the cache is left out:
    sessions work without it, only slower.
    """
    cache.mkdir()
    with tempfile.TemporaryDirectory(prefix="harness-adapters-") as home:
        try:
            done = subprocess.run(
                _command(launch, cache, Path(home)),
                input=launch.stdin,
                capture_output=True,
                timeout=120,
            )
            problem = "" if mark in done.stdout else _last_line(done.stderr)
        except (OSError, subprocess.TimeoutExpired, SandboxError) as error:
            problem = str(error)
    if problem or not any(cache.rglob("*")):
        shutil.rmtree(cache)
        return (
            f"no compile cache for {name} (sessions start slower): {problem or 'node wrote none'}"
        )
    for path in cache.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return f"compiled {name} once for all sessions"


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["no output"])[-1]


def _command(launch: Launch, cache: Path, home: Path) -> Sequence[str]:
    for path, text in launch.home_files.items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    command = [
        *(str(find_bwrap()), "--unshare-all", "--die-with-parent", "--new-session"),
        *("--uid", str(UID), "--gid", str(UID)),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
        *("--tmpfs", "/opt"),
    ]
    for bind in launch.binds:
        command += ["--ro-bind", str(bind.source), bind.target]
        if cache.is_relative_to(bind.source):
            inside = f"{bind.target}/{cache.relative_to(bind.source)}"
            command += ["--bind", str(cache), inside]
    command += ["--tmpfs", "/home", "--bind", str(home), HOME, "--chdir", "/", "--clearenv"]
    for name, value in launch.env.items():
        command += ["--setenv", name, value]
    return [*command, "--", *launch.argv]
