"""How well replayed files agree with files known otherwise: from the log itself, or from git."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.replay.content import Certainty, Content


@dataclass(slots=True)
class Fidelity:
    """Comparisons of whole files, by the certainty that was claimed. Bytes are UTF-8."""

    files: dict[Certainty, int] = field(default_factory=dict)
    equal: dict[Certainty, int] = field(default_factory=dict)
    bytes: dict[Certainty, int] = field(default_factory=dict)
    right: dict[Certainty, int] = field(default_factory=dict)
    """Bytes of the true file that the replayed one has in the same order, by lines."""
    wrong: list[str] = field(default_factory=list)
    """Paths of files that were not equal."""

    def add(self, path: str, replayed: Content, truth: str) -> None:
        """Compare one file."""
        kind = replayed.certainty
        size = len(truth.encode(errors="replace"))
        same = size if replayed.text == truth else _common(replayed.text or "", truth)
        self.files[kind] = self.files.get(kind, 0) + 1
        self.equal[kind] = self.equal.get(kind, 0) + (replayed.text == truth)
        self.bytes[kind] = self.bytes.get(kind, 0) + size
        self.right[kind] = self.right.get(kind, 0) + same
        if replayed.text != truth:
            self.wrong.append(path)

    def merge(self, other: Fidelity) -> None:
        """Add the other's comparisons to these."""
        for mine, theirs in (
            (self.files, other.files),
            (self.equal, other.equal),
            (self.bytes, other.bytes),
            (self.right, other.right),
        ):
            for kind, number in theirs.items():
                mine[kind] = mine.get(kind, 0) + number
        self.wrong += other.wrong

    def share(self) -> float | None:
        """Right bytes of all compared; None when nothing could be compared."""
        total = sum(self.bytes.values())
        return sum(self.right.values()) / total if total else None


def _common(mine: str, truth: str) -> int:
    one, other = mine.splitlines(keepends=True), truth.splitlines(keepends=True)
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    lines = (line for block in blocks for line in other[block.b : block.b + block.size])
    return sum(len(line.encode(errors="replace")) for line in lines)


def against_git(files: Mapping[str, Content], repository: Path, commit: str) -> Fidelity:
    """Compare files, by path within the repository, with a commit. Partly known ones are left out.

    Raises TraceError when the commit or the repository can't be read.
    """
    result = Fidelity()
    tree = _git(repository, "ls-tree", "-r", "--name-only", "-z", commit)
    present = set(tree.decode(errors="replace").split("\0"))
    for path, content in sorted(files.items()):
        if not content.known or path not in present:
            continue
        blob = _git(repository, "show", f"{commit}:{path}")
        result.add(path, content, blob.decode(errors="replace"))
    return result


def _git(repository: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(repository), "-c", "core.fsmonitor=false", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TraceError(f"{repository}: git failed ({error}); check the repository") from error
    if done.returncode != 0:
        reason = done.stderr.decode(errors="replace").strip().splitlines()
        words = reason[-1] if reason else "no reason given"
        raise TraceError(f"{repository}: git {arguments[0]}: {words}; check path and commit")
    return done.stdout
