"""Installing a harness: one directory per version, from its lock file, with a runtime of its own.

The directory appears whole (built beside it, then renamed), so a kill leaves nothing half-made.
The lock files hold hashes and no registry's address: npm and pip take the packages from the
registry that the machine is set up for.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness_adapters.errors import HarnessError
from harness_adapters.harness.registry import get_harness
from harness_adapters.paths import harness_dir

Say = Callable[[str], None]


def install(name: str, version: str | None = None, say: Say = lambda text: None) -> Path:
    """Install a harness, or find it already there (then nothing is downloaded).

    Raises HarnessError: unknown name or version, npm or pip missing or failing, a program that
    doesn't run.
    """
    harness = get_harness(name)
    if version not in (None, harness.version):
        raise HarnessError(f"no lock file for {name} {version}; {harness.version} is supported")
    target = harness_dir(name, harness.version)
    if harness.complete(target):
        say(f"{name} {harness.version} is installed in {target}")
        return target
    with _workplace(target) as work:
        harness.build(work, say)
        _put(work, target, harness.complete)
    say(f"installed {name} {harness.version} in {target}")
    return target


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


def _put(work: Path, target: Path, complete: Callable[[Path], bool]) -> None:
    try:
        work.rename(target)
    except OSError as error:
        if not complete(target):  # else another install was faster
            raise HarnessError(f"{target}: {error.strerror}; remove it and try again") from None
