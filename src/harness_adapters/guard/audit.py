"""The audit log: one JSON line for every tool call that was judged."""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall
from harness_adapters.records import Verdict

SHOWN_CHARACTERS = 200
"""Of a call's arguments; the hash covers all of them."""


class AuditLog:
    """Append-only. A line is one write in append mode: whole after a kill, safe between threads.

    Raises StoreError when the file can't be opened or a line can't be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            size = os.fstat(self._fd).st_size
            if size and os.pread(self._fd, 1, size - 1) != b"\n":
                # A full disk can cut a line; the next one must not be glued to it.
                os.write(self._fd, b"\n")
        except OSError as error:
            raise StoreError(f"audit log {path}: {error.strerror}") from None

    def append(self, call: ProposedCall, call_id: str, verdict: Verdict) -> None:
        """Write one line; it is in the kernel's hands when this returns."""
        arguments = call.arguments.encode(errors="surrogatepass")
        line = json.dumps(
            {
                "time": round(time.time(), 3),
                "session": call.session,
                "task": call.task,
                "harness": call.harness,
                "turn": call.turn,
                "call": call_id,
                "name": call.name,
                "arguments_sha256": hashlib.sha256(arguments).hexdigest(),
                "arguments": call.arguments[:SHOWN_CHARACTERS],
                "decision": verdict.decision,
                "rule": verdict.rule,
                "reason": verdict.reason,
            }
        )
        data = line.encode() + b"\n"
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            raise StoreError(f"audit log {self.path}: {error.strerror}") from None
        if written != len(data):
            raise StoreError(f"audit log {self.path}: the disk is full; free space and resume")

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
