"""What a miner yields: one unit of work of a session, not proven yet.

The gates decide whether it becomes a task; `harbor.write` turns it into a task directory. All paths
are relative to the working directory, in POSIX form.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Files: TypeAlias = Mapping[str, bytes]
"""Content by relative path."""

Changes: TypeAlias = Mapping[str, bytes | None]
"""New content by relative path; None where the file is deleted."""


class TaskType(StrEnum):
    """What kind of work a task asks for."""

    REPAIR = "repair"
    """A check failed and then passed."""
    BUILD = "build"
    """The project that the first request of a session asked for."""
    EXTEND = "extend"
    """The next feature on a project that worked."""
    QA = "qa"
    """A fact computed from data."""


class CheckKind(StrEnum):
    """How the verifier finds out whether the work is done."""

    PYTHON_TESTS = "python_tests"
    """The hidden files are tests (unittest, or functions named `test…`); all must pass."""
    OUTPUT = "output"
    """A command exits with 0 and prints what it printed at the end of the session."""
    ANSWER = "answer"
    """`answer.txt` holds the answer."""


ANSWER_FILE = "answer.txt"
"""Where a QA task wants its answer; its instruction must say so."""


@dataclass(frozen=True, slots=True)
class Check:
    """What failed, or was unknown, before the work, and holds after it."""

    kind: CheckKind
    command: str = ""
    """OUTPUT: run with bash in the working directory. PYTHON_TESTS: as the session ran it."""
    expected: str = ""
    """OUTPUT: standard output after the work. ANSWER: the answer."""
    failure: str = ""
    """What it printed when it failed, as recorded; empty where it never ran before the work."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a candidate comes from."""

    source: str
    """Name of the file or data set that held the session."""
    format: str
    session: str
    """The session's id; tasks of one session stay in one split."""
    licence: str = ""
    """SPDX expression of the source; empty means unlicensed, and such a task is never exported."""
    first_turn: int = 0
    last_turn: int = 0
    """The stretch of the session that was the work, both ends included."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One unit of work that might become a task."""

    type: TaskType
    instruction: str
    before: Files
    """What the agent finds. The hidden files are not among them."""
    after: Changes
    """The oracle: what the work changed, without the hidden files. Empty for QA."""
    check: Check
    provenance: Provenance
    hidden: Files = field(default_factory=dict[str, bytes])
    """Test files that only the verifier has, under the paths at which it runs them."""
    oracle_command: str = ""
    """QA: a bash command whose standard output is the answer."""
    needs: tuple[str, ...] = ("python3",)
    """Programs that must be on the PATH."""
    later: str = ""
    """What people and the model said after the work began; none of it may stand in the task."""
    data: tuple[str, ...] = ()
    """QA: the files of `before` from which the answer is computed."""

    @property
    def id(self) -> str:
        """Name of the task directory: the type and a hash of what the agent sees and must do."""
        digest = hashlib.sha256(f"{self.type}\0{self.instruction}".encode())
        for files in (self.before, self.after, self.hidden):
            for path, content in sorted(files.items()):
                size = -1 if content is None else len(content)
                digest.update(f"\0{path}\0{size}\0".encode() + (content or b""))
        digest.update(f"\0{self.check.command}\0{self.check.expected}".encode())
        return f"{self.type}-{digest.hexdigest()[:12]}"

    def solved(self) -> dict[str, bytes]:
        """The working directory after the oracle's changes (QA: as before)."""
        files = dict(self.before)
        for path, content in self.after.items():
            if content is None:
                files.pop(path, None)
            else:
                files[path] = content
        return files
