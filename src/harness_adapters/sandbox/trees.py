"""Directory trees that untrusted programs made: deleting them, and copying trusted ones.

Nothing here follows a symbolic link, recurses, or holds more than two directories open: an agent
can make a tree so deep that its path is longer than the kernel takes.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from pathlib import Path

OPAQUE = "user.overlay.opaque"
"""Extended attribute of an overlay directory that hides what lower layers hold under its name."""


def remove_tree(path: Path) -> None:
    """Delete `path` and all under it; a missing path is fine.

    Subdirectories are first renamed to the top, so that no path ever grows with the depth.
    """
    try:
        top = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(top.st_mode):
        path.unlink(missing_ok=True)
        return
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        pending, serial = [path.name], 0
        while pending:
            name = pending.pop()
            os.chmod(name, 0o700, dir_fd=parent)
            directory = open_directory(name, parent)
            try:
                with os.scandir(directory) as entries:
                    found = list(entries)
                for entry in found:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.name, dir_fd=directory)
                        continue
                    serial += 1
                    lifted = f"{path.name}.{serial}"
                    # A directory's own ".." changes when it moves, so it must be writable.
                    os.chmod(entry.name, 0o700, dir_fd=directory)
                    os.rename(entry.name, lifted, src_dir_fd=directory, dst_dir_fd=parent)
                    pending.append(lifted)
            finally:
                os.close(directory)
            os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)


def open_directory(name: str, parent: int) -> int:
    """Descriptor of the directory `name` in `parent`; fails on a symbolic link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=parent)


def copy_tree(source: Path, target: Path, owner: int) -> None:
    """Copy a trusted tree so that `owner` may use it; `target` must not exist.

    Keeps files, directories, links, permissions (never setuid), times and what overlays mean by
    whiteouts and opaque directories; drops FIFOs, sockets and devices.
    """
    pending = [(source, target)]
    while pending:
        read, write = pending.pop()
        write.mkdir()
        if _opaque(read):
            os.setxattr(write, OPAQUE, b"y")
        with os.scandir(read) as entries:
            for entry in entries:
                place = write / entry.name
                info = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(info.st_mode):
                    pending.append((Path(entry.path), place))
                elif stat.S_ISLNK(info.st_mode):
                    place.symlink_to(Path(entry.path).readlink())
                    os.lchown(place, owner, owner)
                elif stat.S_ISREG(info.st_mode):
                    shutil.copyfile(entry.path, place)
                    _settle(place, info, owner)
                elif is_whiteout(info):
                    os.mknod(place, stat.S_IFCHR, os.makedev(0, 0))
        _settle(write, read.stat(), owner)


def owned_by(path: Path, owner: int) -> bool:
    """Whether all of a tree belongs to `owner` already and `owner` can reach it."""
    if not reachable(path, owner) or path.stat().st_uid != owner:
        return False
    pending = [path]
    while pending:
        with os.scandir(pending.pop()) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                if info.st_uid != owner and not is_whiteout(info):
                    return False
                if stat.S_ISDIR(info.st_mode):
                    pending.append(Path(entry.path))
    return True


def reachable(path: Path, uid: int) -> bool:
    """Whether `uid`, a member of no group of anybody else, may enter every parent of `path`."""
    for parent in path.resolve().parents:
        info = parent.stat()
        if not info.st_mode & (stat.S_IXUSR if info.st_uid == uid else stat.S_IXOTH):
            return False
    return True


def is_whiteout(info: os.stat_result) -> bool:
    """Whether an entry is an overlay's mark of a deleted name."""
    return stat.S_ISCHR(info.st_mode) and info.st_rdev == 0


def _settle(path: Path, info: os.stat_result, owner: int) -> None:
    os.chown(path, owner, owner)
    path.chmod(info.st_mode & 0o777)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def _opaque(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.getxattr(directory, OPAQUE) == b"y"
    return False


def supports_user_attributes(directory: Path) -> bool:
    """Whether overlays can mark opaque directories here (tmpfs: since Linux 6.6)."""
    try:
        os.setxattr(directory, "user.overlay.probe", b"y")
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM):
            return False
        raise
    with contextlib.suppress(OSError):  # another sandbox that starts now was faster
        os.removexattr(directory, "user.overlay.probe")
    return True
