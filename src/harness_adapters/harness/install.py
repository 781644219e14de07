"""Installing a harness: its npm lock file, a node of its own, one directory per version.

The directory appears whole (built beside it, then renamed), so a kill leaves nothing half-made.
The lock files hold hashes and no registry's address: npm takes the packages from the registry
that the machine is set up for.
"""

from __future__ import annotations

import importlib.resources
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_adapters.errors import HarnessError
from harness_adapters.harness import pi
from harness_adapters.harness.compile_cache import warm
from harness_adapters.harness.registry import get_harness
from harness_adapters.paths import harness_dir

NPM_SECONDS = 1800


def install(
    name: str, version: str | None = None, say: Callable[[str], None] = lambda text: None
) -> Path:
    """Install a harness, or find it already there (then nothing is downloaded).

    Raises HarnessError: unknown name or version, npm missing or failing, a node that doesn't run.
    """
    harness = get_harness(name)
    if version not in (None, harness.version):
        raise HarnessError(f"no lock file for {name} {version}; {harness.version} is supported")
    target = harness_dir(name, harness.version)
    if _complete(target):
        say(f"{name} {harness.version} is installed in {target}")
        return target
    npm = shutil.which("npm")
    if npm is None:
        raise HarnessError(
            f"npm is needed to install {name}; install Node.js with npm "
            "(Debian: apt install npm) and run it again"
        )
    say(f"installing {name} {harness.version} with npm (about 300 MB)")
    with _workplace(target) as work:
        _npm_ci(npm, name, work)
        _check(name, harness.version, work)
        say(warm(work))
        _put(work, target)
    say(f"installed {name} {harness.version} in {target}")
    return target


def _complete(root: Path) -> bool:
    return (root / pi.CLI).is_file() and pi.node(root).is_file()


@contextmanager
def _workplace(target: Path) -> Iterator[Path]:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        # Sessions run as another user and read it through a bind mount.
        work.chmod(0o755)
    except OSError as error:
        raise HarnessError(f"{target.parent}: {error.strerror}; can't install there") from None
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _npm_ci(npm: str, name: str, work: Path) -> None:
    locks = importlib.resources.files("harness_adapters.harness") / "locks" / name
    for file in ("package.json", "package-lock.json"):
        (work / file).write_bytes((locks / file).read_bytes())
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=work, capture_output=True, text=True, errors="replace", timeout=NPM_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"npm took more than {NPM_SECONDS} s; run it again") from None
    except OSError as error:
        raise HarnessError(f"npm can't be started: {error.strerror}") from None
    if done.returncode:
        raise HarnessError(f"npm could not install {name}: {_npm_error(done.stderr)}")


def _npm_error(stderr: str) -> str:
    """npm's last error line that is about the error (not about its log file)."""
    lines = [
        line.removeprefix("npm").strip().removeprefix("error").removeprefix("ERR!").strip()
        for line in stderr.splitlines()
        if line.startswith(("npm error", "npm ERR!"))
    ]
    told = [line for line in lines if line and "complete log" not in line and "_logs" not in line]
    return told[-1] if told else (stderr.strip().splitlines() or ["no message"])[-1]


def _check(name: str, version: str, work: Path) -> None:
    """Run the CLI's `--version` with its own node."""
    node = pi.node(work)
    if not node.is_file():
        raise HarnessError(
            f"npm installed no node for this machine ({node.parent.parent.name}); "
            f"{name} runs on Linux x86_64 and arm64"
        )
    environment = {
        "PATH": os.defpath,
        "HOME": str(work),
        "PI_OFFLINE": "1",
        "NODE_DISABLE_COMPILE_CACHE": "1",
    }
    try:
        done = subprocess.run(
            [node, work / pi.CLI, "--version"],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{name} does not start: {error}") from None
    if done.returncode or done.stdout.strip() != version:
        told = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise HarnessError(f"{name} --version failed instead of {version}: {told[-1]}")


def _put(work: Path, target: Path) -> None:
    try:
        work.rename(target)
    except OSError as error:
        if not _complete(target):  # else another install was faster
            raise HarnessError(f"{target}: {error.strerror}; remove it and try again") from None
