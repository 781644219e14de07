"""V8 code of pi, compiled once: about a fifth of a short session's node time (0.61 to 0.49 s).

Node keeps compiled code by file path and user id (`module.enableCompileCache` in its docs). A
directory that sessions could write would let one session put code into another's pi, so a trusted
run fills it at install time, and sessions see it read-only with everything else of the install.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.harness import HOME, pi
from harness_adapters.sandbox.command import UID, find_bwrap


def warm(root: Path) -> str:
    """Fill `root`'s compile cache by a session without a model; returns a line for people.

    Where the run fails the cache is left out: sessions work without it, only slower.
    """
    cache = root / pi.COMPILE_CACHE
    cache.mkdir()
    with tempfile.TemporaryDirectory(prefix="harness-adapters-") as home:
        try:
            done = subprocess.run(
                _command(root, cache, Path(home)),
                input=b"Say done.",
                capture_output=True,
                timeout=120,
            )
            problem = "" if b'"agent_settled"' in done.stdout else _last_line(done.stderr)
        except (OSError, subprocess.TimeoutExpired, SandboxError) as error:
            problem = str(error)
    if problem or not any(cache.rglob("*")):
        shutil.rmtree(cache)
        return f"no compile cache for pi (sessions start slower): {problem or 'node wrote none'}"
    for path in cache.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return "compiled pi once for all sessions"


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["no output"])[-1]


def _command(root: Path, cache: Path, home: Path) -> list[str]:
    """pi in a namespace without network, at the paths that sessions have (the cache's keys).

    Nothing answers at the base URL: pi loads everything, fails to connect and ends.
    """
    for path, text in pi.home_files("http://127.0.0.1:9/v1", max_context=4096, lean=True).items():
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text(text)
    command = [
        *(str(find_bwrap()), "--unshare-all", "--die-with-parent", "--new-session"),
        *("--uid", str(UID), "--gid", str(UID)),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),
        *("--tmpfs", "/opt", "--ro-bind", str(root), pi.MOUNT),
        *("--bind", str(cache), f"{pi.MOUNT}/{pi.COMPILE_CACHE}"),
        *("--tmpfs", "/home", "--bind", str(home), HOME, "--chdir", "/", "--clearenv"),
    ]
    for name, value in pi.environment(compile_cache=True).items():
        command += ["--setenv", name, value]
    return [*command, "--", *pi.arguments(root, lean=True)]
