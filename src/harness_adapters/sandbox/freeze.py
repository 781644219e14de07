"""Sanitise what an agent wrote, in place, so that it can be a layer under a verifier.

Every process of the session is dead by now, so nothing moves while this looks.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness_adapters.errors import WorkspaceError
from harness_adapters.sandbox.trees import OPAQUE, is_whiteout, open_directory

MAX_FILES = 50_000
MAX_BYTES = 512 << 20
MAX_DEPTH = 64


@dataclass(slots=True)
class Counts:
    """What one pass found."""

    files: int = 0
    bytes: int = 0
    removed: int = 0


def sanitise(
    upper: Path,
    workdir: str,
    *,
    lowers: Sequence[Path],
    max_files: int,
    max_bytes: int,
    max_depth: int,
) -> Counts:
    """Keep regular files, directories, links that stay inside `workdir`, and deletions.

    Drops FIFOs, sockets, devices and escaping links; strips setuid bits and every extended
    attribute but the mark of an opaque directory. A dropped entry must not bring the one below
    it in `lowers` back: it becomes a deletion. Raises WorkspaceError beyond the limits.
    """
    walk = _Walk(PurePosixPath(workdir), lowers, max_files, max_bytes, max_depth)
    root = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(root, stat.S_IMODE(os.fstat(root).st_mode) & 0o777 | 0o700)
        _strip_attributes(root)
        walk.directory(root, PurePosixPath())
    finally:
        os.close(root)
    return walk.counts


@dataclass(slots=True)
class _Walk:
    workdir: PurePosixPath
    lowers: Sequence[Path]
    max_files: int
    max_bytes: int
    max_depth: int
    counts: Counts = field(default_factory=Counts)

    def directory(self, descriptor: int, relative: PurePosixPath) -> None:
        if len(relative.parts) > self.max_depth:
            raise WorkspaceError(f"workspace: directories nested deeper than {self.max_depth}")
        with os.scandir(descriptor) as entries:
            found = list(entries)
        for entry in found:
            info = entry.stat(follow_symlinks=False)
            place = relative / entry.name
            if is_whiteout(info):
                self._count(0)
            elif stat.S_ISDIR(info.st_mode):
                self._count(0)
                os.chmod(entry.name, info.st_mode & 0o777 | 0o700, dir_fd=descriptor)
                below = open_directory(entry.name, descriptor)
                try:
                    _strip_attributes(below)
                    self.directory(below, place)
                finally:
                    os.close(below)
            elif stat.S_ISREG(info.st_mode):
                self._count(info.st_blocks * 512)
                self._file(entry.name, descriptor, info)
            elif stat.S_ISLNK(info.st_mode) and self._stays(
                relative, os.readlink(entry.name, dir_fd=descriptor)
            ):
                self._count(0)
            else:
                self._drop(entry.name, descriptor, place)

    def _count(self, size: int) -> None:
        self.counts.files += 1
        self.counts.bytes += size
        if self.counts.files > self.max_files:
            raise WorkspaceError(f"workspace: more than {self.max_files} changed entries")
        if self.counts.bytes > self.max_bytes:
            raise WorkspaceError(f"workspace: more than {self.max_bytes >> 20} MB changed")

    def _file(self, name: str, parent: int, info: os.stat_result) -> None:
        # By the magic link, as there is no *at form: `name` is a regular file, looked at above.
        path = f"/proc/self/fd/{parent}/{name}"
        permissions = info.st_mode & 0o777
        attributes = os.listxattr(path, follow_symlinks=False)
        if attributes:  # only who may write a file may remove them
            os.chmod(name, permissions | 0o600, dir_fd=parent)
        for attribute in attributes:
            os.removexattr(path, attribute, follow_symlinks=False)
        if attributes or info.st_mode & 0o7000:
            os.chmod(name, permissions, dir_fd=parent)

    def _stays(self, directory: PurePosixPath, target: str) -> bool:
        """Whether a link in the real directory `directory` can't lead out of the workdir.

        ".." is taken only at the start of a relative target, where it counts real parents. After
        a name it would start from wherever that name, maybe a link itself, leads.
        """
        path = PurePosixPath(target)
        if path.is_absolute():
            return ".." not in path.parts and path.is_relative_to(self.workdir)
        ups = 0
        for part in path.parts:
            if part != "..":
                break
            ups += 1
        return ups <= len(directory.parts) and ".." not in path.parts[ups:]

    def _drop(self, name: str, parent: int, place: PurePosixPath) -> None:
        os.unlink(name, dir_fd=parent)
        self.counts.removed += 1
        if any(os.path.lexists(lower / place) for lower in self.lowers):
            with contextlib.suppress(OSError):  # needs Linux 5.8 without root
                os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)


def _strip_attributes(directory: int) -> None:
    for attribute in os.listxattr(directory):
        if attribute != OPAQUE or os.getxattr(directory, attribute) != b"y":
            os.removexattr(directory, attribute)
