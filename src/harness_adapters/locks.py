"""One process at a time on a directory: an advisory lock that dies with its process."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harness_adapters.errors import StoreError


class DirectoryLock:
    """Holds `directory/.lock` until `release` or the end of the process."""

    def __init__(self, directory: Path) -> None:
        """Raises StoreError when another process holds it."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._file, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"{directory} is in use by another process (id {holder}): wait for it or end it"
            ) from None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let others in; harmless when called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
