"""Where the state of live sandboxes lies: one directory each, memory-backed where possible."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.paths import scratch_dir
from harness_adapters.sandbox.trees import reachable, remove_tree, supports_user_attributes

_UNPRIVILEGED = 200_000
"""Beyond the users of any ordinary machine."""


class State(StrEnum):
    """What lies in a scratch directory; a name begins with its kind and its process."""

    BOX = "box"
    """A sandbox's upper layer, home and copies."""
    LAYER = "layer"
    """A frozen workspace."""
    VERIFY = "verify"
    """A verifier's tests and its reward."""
    CHECK = "check"
    """Trying whether overlays work here."""
    PROBE = "probe"
    """The files of the probe's sandbox."""
    WORKSPACE = "workspace"
    """A working directory made to be verified, without a session."""


_STATE = re.compile(rf"(?:{'|'.join(State)})-(\d+)-[0-9a-f]+(?:\.\d+)?")


def sandbox_uid() -> int:
    """The host's uid that sandboxed processes run under: never 0.

    As uid 0 they could write the kernel's settings under /proc/sys.
    """
    if os.geteuid() != 0:
        return os.geteuid()
    mapped = [line.split() for line in Path("/proc/self/uid_map").read_text().splitlines()]
    for uid in (_UNPRIVILEGED, 60_000, 1000):
        if any(int(first) <= uid < int(first) + int(count) for first, _, count in mapped):
            return uid
    raise SandboxError(
        "this user namespace maps no user but root, and a sandbox must not run as root: "
        "run as an ordinary user instead"
    )


def scratch_root(chosen: Path | None, uid: int) -> Path:
    """The directory that holds the state of sandboxes; made if missing.

    Raises SandboxError where it belongs to somebody else, or `uid` can't reach it.
    """
    if chosen is not None:
        root = _claim(chosen)
        if not supports_user_attributes(root):
            raise SandboxError(
                f"scratch directory {root}: its file system has no user extended attributes, "
                "which overlays need: choose another"
            )
    else:
        root = _claim(scratch_dir())
        if not supports_user_attributes(root):
            root = _claim(_on_disk())
    if not reachable(root / "x", uid):
        raise SandboxError(
            f"scratch directory {root}: uid {uid}, which sandboxes run under, can't enter it: "
            "choose one outside private directories"
        )
    return root


def _on_disk() -> Path:
    """The scratch directory where `scratch_dir`'s file system can't hold overlays."""
    return Path(tempfile.gettempdir()) / f"harness-adapters-{os.getuid()}"


def _claim(root: Path) -> Path:
    # Its names can't be listed by others, and nobody else may have made it: /dev/shm and /tmp
    # are open to all.
    try:
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        info = root.lstat()
    except OSError as error:
        raise SandboxError(f"scratch directory {root}: {error.strerror}") from None
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
        raise SandboxError(f"scratch directory {root} belongs to somebody else: remove it")
    if not info.st_mode & stat.S_IXOTH:
        root.chmod(info.st_mode | stat.S_IXOTH)
    return root


def new_state(root: Path, kind: State) -> Path:
    """A name under `root` that `clean_scratch` recognises; nothing is made."""
    return root / f"{kind}-{os.getpid()}-{secrets.token_hex(6)}"


@contextlib.contextmanager
def temporary_state(kind: State) -> Iterator[Path]:
    """An empty directory that sandboxed processes can enter, removed at the end."""
    place = new_state(scratch_root(None, sandbox_uid()), kind)
    try:
        place.mkdir(mode=0o711)
    except OSError as error:
        raise SandboxError(f"can't make {place}: {error.strerror}") from None
    try:
        yield place
    finally:
        remove_tree(place)


def clean_scratch(root: Path | None = None) -> int:
    """Remove what sandboxes of processes that are gone left behind; how many directories.

    In `root`, else wherever `scratch_root` may have put it.
    """
    roots = [root] if root else list(dict.fromkeys([scratch_dir(), _on_disk()]))
    return sum(map(_clean, roots))


def _clean(root: Path) -> int:
    # Others may have made a directory of that name in /tmp: what they put there is theirs.
    if not root.is_dir() or root.lstat().st_uid != os.geteuid():
        return 0
    removed = 0
    for entry in sorted(root.iterdir()):
        match = _STATE.fullmatch(entry.name)
        if match and not Path(f"/proc/{match[1]}").exists():
            remove_tree(entry)
            removed += 1
    return removed
