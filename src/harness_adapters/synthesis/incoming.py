"""The sessions of all files that a user names, each under a key of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.synthesis.traces.finding import find_files
from harness_adapters.synthesis.traces.reading import FileReport, read_file
from harness_adapters.synthesis.traces.session import Session


@dataclass(frozen=True, slots=True)
class Incoming:
    """One session of a file."""

    key: str
    path: Path
    session: Session


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that gave no session."""

    key: str
    path: Path
    problem: str


def incoming(names: Sequence[str]) -> Iterator[Incoming | Unreadable]:
    """Every session, file by file; a file that can't be read is one entry, and the others go on."""
    for found in find_files(names):
        report = FileReport(str(found.path))
        number = 0
        for number, session in enumerate(read_file(found.path, report), 1):
            yield Incoming(session_key(found.path, session.id, number), found.path, session)
        if report.error is not None or number == 0:
            problem = report.error or f"{found.path}: no session in it"
            yield Unreadable(session_key(found.path, "", 0), found.path, problem)


def session_key(path: Path, session: str, number: int) -> str:
    """The same for the same session of the same file name, wherever the file lies."""
    text = f"{path.parent.name}/{path.name}\0{session}\0{number}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
