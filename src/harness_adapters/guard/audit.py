"""The audit log: one JSON line for every tool call that was judged, chained to the one before."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.chain import (
    Head,
    Position,
    boot_id,
    head_file,
    machine_key,
    read_head,
    seal,
    walk,
    write_head,
)
from harness_adapters.guard.redact import redacted
from harness_adapters.paths import audit_dir
from harness_adapters.records import Verdict

SHOWN_CHARACTERS = 200
"""Of a call's arguments, secrets hidden; the hash covers all of them."""
SHOWN_NAME = 200
SHOWN_REASON = 500


class AuditLog:
    """Append-only. A line is one write: whole after a kill, safe between threads and processes.

    Every entry carries the MAC of the one before, and a signed head says how many there are
    (`guard/chain.py`); `guard/verify.py` checks both. A log whose file was emptied or removed
    starts a new chain when it is opened, and its old head is kept as evidence. One that was cut
    takes no further entry, unless the machine stopped in between: then the next entry says how many
    were lost with what the disk didn't have yet.

    Raises StoreError when the file can't be opened, was cut, or a line can't be written.
    """

    def __init__(self, path: Path, *, home: Path | None = None) -> None:
        """`home` holds the key and the heads; `paths.audit_dir()` when it isn't given."""
        self.path = path
        home = home or audit_dir()
        self._key = machine_key(home)
        self._boot = boot_id()
        self._thread_lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._inode = os.fstat(self._fd).st_ino
            self._real = path.resolve()
            self.head = head_file(home, self._real)
            self.head.parent.mkdir(exist_ok=True, mode=0o700)
            self._head_fd = os.open(self.head, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with self._locked():
                self._begin()
        except OSError as error:
            self._fail(str(error.strerror))

    def append(
        self, call: ProposedCall, call_id: str, verdict: Verdict, *, enforced: bool = True
    ) -> None:
        """Write one line; it is in the kernel's hands when this returns.

        `enforced` is False where a verdict only goes on record and the call passes all the same.
        """
        arguments = call.arguments.encode(errors="surrogatepass")
        values: dict[str, Any] = {
            "time": round(time.time(), 3),
            "session": call.session,
            "task": call.task,
            "harness": call.harness,
            "turn": call.turn,
            "call": call_id,
            "name": redacted(call.name, SHOWN_NAME),
            "arguments_sha256": hashlib.sha256(arguments).hexdigest(),
            "arguments": redacted(call.arguments, SHOWN_CHARACTERS),
            "decision": verdict.decision,
            "rule": verdict.rule,
            "reason": redacted(verdict.reason, SHOWN_REASON),
        }
        if not enforced:
            values["enforced"] = False
        try:
            with self._locked():
                self._write(values)
        except OSError as error:
            self._fail(str(error.strerror))

    def size(self) -> int:
        """Bytes so far; what is written later is read by `since`."""
        return os.fstat(self._fd).st_size

    def since(self, size: int, session: str) -> list[dict[str, Any]]:
        """The entries of a session that stand behind the first `size` bytes, in order."""
        lines = self._read(size, self.size()).split(b"\n")
        entries: list[dict[str, Any]] = []
        for line in lines:
            with suppress(ValueError):  # a line that a kill has cut, or another's half
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("session") == session:
                    entries.append(entry)
        return entries

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
        os.close(self._head_fd)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """The head's lock holds off other processes, the thread lock threads on this object."""
        with self._thread_lock:
            fcntl.flock(self._head_fd, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._head_fd, fcntl.LOCK_UN)

    def _begin(self) -> None:
        """Give the log a head, unless it has one that fits."""
        old, size = os.pread(self._head_fd, 1 << 16, 0), os.fstat(self._fd).st_size
        if not old:
            # From before there were chains, or from another place: what fits the key is taken on.
            self._put(walk(self._key, self._read(0, size), Position()).at)
            return
        head = read_head(self._key, self._real, old)
        if head is not None and size < head.at.offset and head.boot != self._boot:
            # What the disk didn't have yet when the machine stopped. The next entry tells.
            at = walk(self._key, self._read(0, size), Position()).at
            self._put(at, head.lost + head.at.entries - at.entries)
        elif not size and (head is None or head.at.entries):
            kept = self.head.with_suffix(f".{time.time_ns()}.replaced")
            kept.write_bytes(old)
            self._put(Position())
        else:
            self._standing(size)

    def _standing(self, size: int) -> Head:
        """The head. Raises StoreError when it can't be true of a file of this size."""
        head = read_head(self._key, self._real, os.pread(self._head_fd, 1 << 16, 0))
        if head is None:
            self._fail(f"its head {self.head} is damaged; move the log away to start a new one")
        if size < head.at.offset:
            self._fail(
                f"{head.at.offset - size} bytes were cut from its end; keep it, and move it away "
                "to start a new one"
            )
        return head

    def _write(self, values: dict[str, Any]) -> None:
        there = self._real.stat()
        if there.st_ino != self._inode:
            self._fail("it was moved or replaced while it was in use")
        head = self._standing(there.st_size)
        at, gap = head.at, b""
        if there.st_size > at.offset:
            # A kill came between an entry and its head, or a full disk cut a line.
            at = walk(self._key, self._read(at.offset, there.st_size), at).at
            gap = self._read(at.offset, there.st_size)
        if head.lost:
            values["lost"] = head.lost
        # A cut line gets an end, so that the next one is not glued to it.
        ended = b"\n" if gap and not gap.endswith(b"\n") else b""
        line, mac = seal(self._key, values, at, gap + ended)
        data = ended + line
        if os.write(self._fd, data) != len(data):
            self._fail("the disk is full; free space and resume")
        self._put(Position(at.entries + 1, there.st_size + len(data), mac))

    def _read(self, start: int, end: int) -> bytes:
        return os.pread(self._fd, end - start, start)

    def _put(self, at: Position, lost: int = 0) -> None:
        head = Head(at, self._boot, lost)
        os.pwrite(self._head_fd, write_head(self._key, self._real, head), 0)

    def _fail(self, why: str) -> NoReturn:
        raise StoreError(f"audit log {self.path}: {why}")
