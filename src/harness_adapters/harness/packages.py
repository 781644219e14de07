"""What drivers install themselves with: npm by a lock file, and a check that the program starts."""

from __future__ import annotations

import importlib.resources
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_adapters.errors import HarnessError

_SECONDS = 1800


def lock_file(name: str, file: str) -> bytes:
    """A file of `harness/locks/<name>/`."""
    locks = importlib.resources.files("harness_adapters.harness") / "locks"
    return (locks / name / file).read_bytes()


def npm_ci(name: str, work: Path) -> None:
    """Install what `name`'s package-lock.json pins into `work`/node_modules; no script is run.

    Raises HarnessError with npm's own reason.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise HarnessError(
            f"npm is needed to install {name}; install Node.js with npm "
            "(Debian: apt install npm) and run it again"
        )
    for file in ("package.json", "package-lock.json"):
        (work / file).write_bytes(lock_file(name, file))
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    done = run(command, work, "npm")
    if done.returncode:
        raise HarnessError(f"npm could not install {name}: {_npm_error(done.stderr)}")


def node(root: Path) -> Path:
    """The node binary of npm's `node-linux-*` below an install directory, for this processor."""
    return root / "node_modules" / f"node-linux-{npm_machine()}" / "bin" / "node"


def npm_machine() -> str:
    """This processor as npm packages name it."""
    machine = platform.machine().lower()
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)


def check_version(
    name: str, version: str, command: Sequence[str | Path], work: Path, env: Mapping[str, str]
) -> None:
    """Run `command`, which must print `version` as its first line's last word.

    HOME is `work`. Raises HarnessError when it fails or prints something else.
    """
    environment = {"PATH": os.defpath, "HOME": str(work), "LC_ALL": "C.UTF-8", **env}
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{name} does not start: {error}") from None
    words = (done.stdout.strip().splitlines() or [""])[0].split()
    if done.returncode or version not in (word.lstrip("v") for word in words):
        told = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise HarnessError(f"{name} --version failed instead of {version}: {told[-1]}")


def run(
    command: Sequence[str], work: Path, what: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `what` in `work` to its end, whatever its exit code; in this process's environment
    where `env` is None. Raises HarnessError when it can't be started or takes too long.
    """
    try:
        return subprocess.run(
            command,
            cwd=work,
            env=env,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"{what} took more than {_SECONDS} s; run it again") from None
    except OSError as error:
        raise HarnessError(f"{what} can't be started: {error.strerror}") from None


def _npm_error(stderr: str) -> str:
    """npm's last error line that is about the error (not about its log file)."""
    lines = [
        line.removeprefix("npm").strip().removeprefix("error").removeprefix("ERR!").strip()
        for line in stderr.splitlines()
        if line.startswith(("npm error", "npm ERR!"))
    ]
    told = [line for line in lines if line and "complete log" not in line and "_logs" not in line]
    return told[-1] if told else (stderr.strip().splitlines() or ["no message"])[-1]
