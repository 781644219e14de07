"""Metadata files that stand beside sessions of the `entire` checkpoint tool: no conversation."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder


class Checkpoint:
    """Knows a checkpoint's metadata file; it holds no session."""

    name = "checkpoint_metadata"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Ids of checkpoint and session beside each other, and no messages."""
        return any("checkpoint_id" in record and "session_id" in record for record in head)

    def feed(self, record: Record) -> None:
        """Count the record."""
        self._out.notes["checkpoints"] += "checkpoint_id" in record

    def finish(self) -> None:
        """Nothing is held back."""
