"""What drivers of Python programs install themselves with: an environment on the system's Python.

The environment is a virtual environment without the files that name its own path (PEP 405: a
`pyvenv.cfg` and a link to the interpreter are all that Python asks for), so that it can be
renamed and bound anywhere.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import HarnessError
from harness_adapters.harness.packages import lock_file, run

SYSTEM_DIRECTORIES = (Path("/usr/bin"), Path("/usr/local/bin"))
"""Where every sandbox sees the host's programs at the host's paths."""

_PROBE = """
import sys, os, json
import ctypes, lzma, sqlite3, ssl, zlib  # parts of their own in some distributions
print(json.dumps([*sys.version_info[:2], os.path.realpath(sys.executable), sys.base_prefix]))
"""

_LEFT_OUT = ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER")
"""Settings of this process that would change what pip installs, or where."""


@dataclass(frozen=True, slots=True)
class SystemPython:
    """An interpreter that sandboxes can run: it lies below /usr with its standard library."""

    path: Path
    version: tuple[int, int]

    @property
    def name(self) -> str:
        """As directories name it, `python3.11`."""
        return f"python{self.version[0]}.{self.version[1]}"


def system_python(program: str, versions: Sequence[tuple[int, int]]) -> SystemPython:
    """The first of `versions` that is there whole. Raises HarnessError saying what to install."""
    for version in versions:
        for directory in SYSTEM_DIRECTORIES:
            found = SystemPython(directory / f"python{version[0]}.{version[1]}", version)
            if _usable(found):
                return found
    wanted = ", ".join(f"{major}.{minor}" for major, minor in sorted(versions))
    raise HarnessError(
        f"{program} needs a Python of the system ({wanted}) in /usr/bin or /usr/local/bin, with "
        "its whole standard library: sandboxes see no other (pyenv, conda, uv). Install one "
        "(Debian 12 and 13: apt install python3; Ubuntu 24.04: apt install python3)"
    )


def _usable(python: SystemPython) -> bool:
    try:
        done = subprocess.run(
            [python.path, "-I", "-c", _PROBE], capture_output=True, timeout=60, cwd="/"
        )
        major, minor, real, prefix = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return False
    below_usr = all(Path(place).resolve().is_relative_to("/usr") for place in (real, prefix))
    return (major, minor) == python.version and below_usr


def environment_python(root: Path) -> Path:
    """The interpreter of the environment in `root`."""
    return root / "bin" / "python3"


def make_environment(root: Path, python: SystemPython) -> None:
    """Make an empty environment on `python` in `root`, which then says which Python it wants."""
    for directory in (root / "bin", site_packages(root, python)):
        directory.mkdir(parents=True)
    environment_python(root).symlink_to(python.path)
    settings = f"home = {python.path.parent}\ninclude-system-site-packages = false\n"
    (root / "pyvenv.cfg").write_text(settings)


def site_packages(root: Path, python: SystemPython) -> Path:
    """Where the environment's packages lie."""
    return root / "lib" / python.name / "site-packages"


def programs(root: Path) -> Path:
    """Where the environment's programs lie that are no Python scripts, apart from its Python: so
    that a PATH can have them without it.
    """
    return root / "programs"


def pip_install(name: str, root: Path) -> None:
    """Install what `name`'s requirements.txt pins into the environment in `root`.

    Wheels only: nothing of a package runs. Their Python scripts are removed, since each names the
    environment's path; `python3 -m` starts programs. Raises HarnessError with pip's own reason.
    """
    lock = root / "requirements.txt"
    lock.write_bytes(lock_file(name, lock.name))
    command = [
        *_pip(name, environment_python(root)),
        *("install", "--requirement", str(lock), "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", "--no-compile", "--ignore-installed"),
        *("--quiet", "--no-input", "--disable-pip-version-check"),
    ]
    done = run(command, root, "pip", env=_clean_environment())
    if done.returncode:
        raise HarnessError(f"pip could not install {name}: {_pip_error(done.stderr)}")
    programs(root).mkdir()
    for script in set((root / "bin").iterdir()) - {environment_python(root)}:
        if _is_binary(script):
            script.rename(programs(root) / script.name)
        else:
            script.unlink()


def compile_all(root: Path, mount: str) -> None:
    """Write the bytecode of every module, so that no session has to compile.

    It says `mount` as its path, where sessions see it, and is never checked against its source:
    the directory is read-only to sessions. What doesn't compile is left to the session.
    """
    command = [
        *(str(environment_python(root)), "-I", "-m", "compileall", "-q"),
        *("--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", mount),
        str(root / "lib"),
    ]
    run(command, root, "compileall", env=_clean_environment())


def _pip(name: str, target: Path) -> list[str]:
    """A pip for `target`'s environment: this program's own, else the system interpreter's."""
    for python in (sys.executable, str(target.resolve())):
        command = [python, "-m", "pip", "--python", str(target)]
        try:
            done = subprocess.run([*command, "--version"], capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return command
    raise HarnessError(
        f"pip 22.3 or newer is needed to install {name}: run `{sys.executable} -m ensurepip`, or "
        "install the system's (Debian: apt install python3-pip), and run it again"
    )


def _is_binary(program: Path) -> bool:
    with program.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _clean_environment() -> Mapping[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _LEFT_OUT}


def _pip_error(stderr: str) -> str:
    """pip's first error: those that follow only repeat it."""
    return next(_errors(stderr), (stderr.strip().splitlines() or ["no message"])[-1])


def _errors(stderr: str) -> Iterator[str]:
    for line in stderr.splitlines():
        if line.startswith("ERROR:"):
            yield line.removeprefix("ERROR:").strip()
