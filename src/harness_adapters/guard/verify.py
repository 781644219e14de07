"""Is an audit log whole, and as it was written?"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from harness_adapters.errors import StoreError
from harness_adapters.guard.chain import Position, head_file, machine_key, read_head, walk
from harness_adapters.paths import audit_dir


@dataclass(frozen=True, slots=True)
class LogReport:
    """What a check of one log found."""

    entries: int
    """That follow each other without a fault from the start."""
    problem: str
    """The first thing that must not be; empty when the log is as it was written."""
    notes: list[str] = field(default_factory=list[str])
    """What a kill or a full disk can leave, too."""

    @property
    def ok(self) -> bool:
        """Whether nothing was changed, added in between, put in another order or cut off."""
        return not self.problem


def verify_log(path: Path, *, home: Path | None = None) -> LogReport:
    """Check the chain from the first entry and the head. Raises StoreError when there is no log.

    Only where its key is: on the machine that wrote it, or with that machine's folder as `home`
    (default `paths.audit_dir()`), where heads go by the path that a log had.
    """
    home = home or audit_dir()
    path = path.resolve()
    head = head_file(home, path)
    # The head first: what is appended meanwhile is then only more than it knows.
    known = head.read_bytes() if head.exists() else None
    try:
        data = path.read_bytes()
    except OSError as error:
        if known is None:
            raise StoreError(f"audit log {path}: {error.strerror}") from None
        data = b""
    key = machine_key(home)
    found = walk(key, data, Position())
    notes = []
    if found.gaps:
        notes.append(f"{found.gaps} places hold bytes that are no entry; the next entry says so")
    if found.lost:
        notes.append(f"{found.lost} entries were lost when the machine stopped; the log says where")
    if found.rest and not found.broken:
        notes.append(f"the last line is cut: {found.rest} bytes that are no entry")
    problem = f"line {found.lines + 1}: {found.broken}" if found.broken else ""
    problem = problem or _against_head(key, path, known, found.at) or _replaced(head, key, path)
    return LogReport(found.at.entries, problem, notes)


def _against_head(key: bytes, path: Path, known: bytes | None, at: Position) -> str:
    if known is None:
        return f"no head of {path} on this machine: a cut end can't be told from a short log"
    head = read_head(key, path, known)
    if head is None:
        return "the head is damaged or forged: a cut end can't be told from a short log"
    if head.at.entries > at.entries:
        return f"the end is cut: {at.entries} entries are there, the head knows {head.at.entries}"
    if head.at.entries == at.entries and head.at.last != at.last:
        return f"entry {at.entries - 1} is not the one that the head knows"
    return ""


def _replaced(head: Path, key: bytes, path: Path) -> str:
    for kept in sorted(head.parent.glob(f"{head.stem}.*.replaced")):
        old = read_head(key, path, kept.read_bytes())
        if old is None or old.at.entries:
            entries = "unknown" if old is None else str(old.at.entries)
            return (
                f"an earlier log of {entries} entries was here and is gone; if you removed it "
                f"yourself, delete {kept}"
            )
    return ""
