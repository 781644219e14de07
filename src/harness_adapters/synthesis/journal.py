"""What became of each session, one JSON line each, written when it is known.

The journal is the whole memory of a run: a run that goes on reads it, and the dataset, its card and
the pages that explain a session are made from it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from harness_adapters.errors import StoreError

KEPT = "kept"


@dataclass(frozen=True, slots=True)
class GateRecord:
    """One gate on one candidate."""

    gate: str
    reason: str
    """Empty: passed."""
    detail: str
    seconds: float
    facts: Mapping[str, float | int | str] = field(default_factory=dict[str, float | int | str])


@dataclass(frozen=True, slots=True)
class CandidateRecord:
    """One candidate, or work that was refused before it became one."""

    type: str
    id: str
    """Empty where it was refused."""
    reason: str
    """Empty: every gate passed."""
    detail: str
    instruction: str = ""
    first_turn: int = 0
    last_turn: int = 0
    check: str = ""
    gates: tuple[GateRecord, ...] = ()
    scores: int = 0
    """How often the verifier ran."""
    signature: str = ""
    """MinHash of what was kept, in hexadecimal digits."""
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session, from its file to its end."""

    key: str
    """Tells sessions of all files apart."""
    source: str
    session: str
    group: str
    """Sessions of one group stay in one split: a session and its forks."""
    format: str
    licence: str
    outcome: str
    """`kept`, or a reason code."""
    detail: str
    turns: int = 0
    calls: int = 0
    seconds: float = 0.0
    tokens: int = 0
    """Asked of the writer's endpoint while this session was worked on."""
    candidates: tuple[CandidateRecord, ...] = ()


class Journal:
    """An append-only file; a line that was cut off by a crash is left out."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> Iterator[SessionRecord]:
        """Every session so far; of a key that stands twice, both."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    yield _record(json.loads(line))
                except (ValueError, TypeError, KeyError) as error:
                    raise StoreError(
                        f"{self.path}: line {number} is damaged ({error}); remove the line"
                    ) from None

    def add(self, record: SessionRecord) -> None:
        """Write one session; it is on the disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._drop_cut_line()
        with self.path.open("ab") as file:
            file.write(json.dumps(asdict(record), ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _drop_cut_line(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb+") as file:
            data = file.read()
            whole = data.rfind(b"\n") + 1
            if whole != len(data):
                file.truncate(whole)


def _record(row: dict[str, Any]) -> SessionRecord:
    candidates = tuple(
        CandidateRecord(
            **{
                **one,
                "gates": tuple(GateRecord(**gate) for gate in one["gates"]),
                "changed": tuple(one["changed"]),
            }
        )
        for one in row["candidates"]
    )
    return SessionRecord(**{**row, "candidates": candidates})
