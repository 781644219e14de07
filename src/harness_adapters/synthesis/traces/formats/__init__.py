"""One reader per log format.

A reader is chosen by what a file holds (`matches` sees its first records), gets its records one by
one (`feed`), and writes what it finds to a `Recorder`. It must take anything: logs are truncated,
hand-edited, and written by versions that nobody has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from harness_adapters.synthesis.traces.recorder import Recorder

Record = dict[str, Any]
"""One line of a JSONL file, a whole JSON document, or one session of a database."""


class TraceReader(Protocol):
    """What reads one format."""

    name: str

    def __init__(self, out: Recorder) -> None: ...

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Whether the first records of a file are of this format."""
        ...

    def feed(self, record: Record) -> None:
        """Read one record."""
        ...

    def finish(self) -> None:
        """The file ended."""
        ...
