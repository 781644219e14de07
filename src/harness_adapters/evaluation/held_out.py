"""Held out means held out: no task, source session or near-duplicate in two places.

A task is compared by fingerprint, so that an adapter can carry those of the tasks it was trained
on (`adapter_card.json`) and be checked where they don't exist. Near-duplicates are told by bottom-k
sketches (Broder 1997): the k smallest hashes of a text's shingles estimate the Jaccard similarity
of two texts, and give it exactly where both have fewer than k shingles together.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness_adapters.errors import TaskError
from harness_adapters.tasks.dataset import instance_hash
from harness_adapters.tasks.task import Task

NEAR = 0.85
"""Near-duplicates: instruction and files are both at least so similar (Jaccard, in [0, 1])."""
SKETCH = 128
"""Hashes per sketch; at a similarity of 0.85 the estimate's standard error is 0.03."""
MAX_FILE_BYTES = 256 << 10
"""Of each file so much is compared."""

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What of a task is compared."""

    id: str
    family: str
    split: str
    content: str
    """sha256 of the instruction and the files that an agent sees."""
    session: str
    """The recorded session that the task was made from; empty where it was not."""
    instruction: tuple[int, ...]
    """Sketch of three-word shingles, 32-bit hashes in ascending order."""
    files: tuple[int, ...]
    """Sketch of five-word shingles of names and contents."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` reads them back."""
        return {
            "id": self.id,
            "family": self.family,
            "split": self.split,
            "content": self.content,
            "session": self.session,
            "instruction": _packed(self.instruction),
            "files": _packed(self.files),
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Fingerprint:
        """Raises KeyError, TypeError or ValueError where `value` is none."""
        return cls(
            id=str(value["id"]),
            family=str(value["family"]),
            split=str(value["split"]),
            content=str(value["content"]),
            session=str(value["session"]),
            instruction=_unpacked(value["instruction"]),
            files=_unpacked(value["files"]),
        )


def fingerprint(task: Task) -> Fingerprint:
    """Read a task's files and sum them up."""
    return Fingerprint(
        id=task.id,
        family=task.family,
        split=str(task.split),
        content=instance_hash(task),
        session=task.session,
        instruction=_sketch([task.instruction], words=3),
        files=_sketch(_file_texts(task.files), words=5),
    )


def check_held_out(train: Sequence[Task], validation: Sequence[Task], test: Sequence[Task]) -> None:
    """Raise TaskError where a test or validation task is also met in an earlier split.

    Compares ids, contents, source sessions and near-duplicates: a result on tasks that training saw
    can't be quoted.
    """
    seen = Seen()
    for split, tasks in (("train", train), ("validation", validation), ("test", test)):
        fresh = [replace(fingerprint(task), split=split) for task in tasks]
        seen.check(fresh)
        seen.add(fresh)


def check_unseen(trained_on: Iterable[Fingerprint], tasks: Sequence[Task], adapter: str) -> None:
    """Raise TaskError where an adapter was trained, or chosen, on one of the tasks."""
    seen = Seen(adapter)
    seen.add(trained_on)
    seen.check([fingerprint(task) for task in tasks])


@dataclass(slots=True)
class Seen:
    """Tasks that others may not resemble."""

    adapter: str = ""
    """Whose training they were; empty inside one dataset."""
    _exact: dict[str, Fingerprint] = field(default_factory=dict[str, Fingerprint])
    _by_shingle: dict[int, list[Fingerprint]] = field(default_factory=dict[int, list[Fingerprint]])

    def add(self, prints: Iterable[Fingerprint]) -> None:
        """Further ones."""
        for one in prints:
            for key in _exact_keys(one):
                self._exact.setdefault(key, one)
            for shingle in one.instruction:
                self._by_shingle.setdefault(shingle, []).append(one)

    def check(self, prints: Iterable[Fingerprint]) -> None:
        """Raise TaskError for the first of `prints` that was seen."""
        for one in prints:
            for key, what in _exact_keys(one).items():
                if other := self._exact.get(key):
                    raise self._refusal(one, other, f"has the same {what}")
            if other := self._near(one):
                raise self._refusal(one, other, "is nearly the same (instruction and files)")

    def _near(self, one: Fingerprint) -> Fingerprint | None:
        shared: dict[str, tuple[int, Fingerprint]] = {}
        for shingle in one.instruction:
            for other in self._by_shingle.get(shingle, ()):
                count, _ = shared.get(other.id, (0, other))
                shared[other.id] = count + 1, other
        for count, other in shared.values():
            # Shared hashes bound the estimate from above: most candidates end here.
            if count < NEAR * min(len(one.instruction), len(other.instruction)):
                continue
            alike = similarity(one.instruction, other.instruction) >= NEAR
            if alike and similarity(one.files, other.files) >= NEAR:
                return other
        return None

    def _refusal(self, one: Fingerprint, other: Fingerprint, why: str) -> TaskError:
        if self.adapter:
            return TaskError(
                f"task {one.id} is not held out: {other.split} task {other.id} of adapter "
                f"{self.adapter} {why}; evaluate on tasks that it wasn't trained or chosen on"
            )
        return TaskError(
            f"{one.split} task {one.id} is not held out: the {other.split} task {other.id} "
            f"{why}; remove one of them from its split"
        )


def similarity(a: Sequence[int], b: Sequence[int]) -> float:
    """Jaccard similarity of two texts by their sketches, in [0, 1]; 1 where both are empty."""
    union = sorted({*a, *b})[:SKETCH]
    both = {*a} & {*b}
    return sum(1 for x in union if x in both) / len(union) if union else 1.0


def unseen_families(trained_on: Collection[Fingerprint], tasks: Iterable[Task]) -> set[str]:
    """Families of `tasks` that training had nothing of; none where nothing of it is known."""
    if not trained_on:
        return set()
    return {t.family for t in tasks} - {f.family for f in trained_on if f.split == "train"}


def _exact_keys(one: Fingerprint) -> dict[str, str]:
    """Key -> what it is, for people."""
    keys = {f"id {one.id}": "id or content", f"content {one.content}": "id or content"}
    if one.session:
        keys[f"session {one.session}"] = f"source session {one.session}"
    return keys


def _file_texts(root: Path) -> list[str]:
    if not root.is_dir():
        return []
    texts: list[str] = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            texts.append(f"{name} -> {path.readlink()}")
        elif path.is_file():
            with path.open("rb") as file:
                content = file.read(MAX_FILE_BYTES)
            texts.append(f"{name}\n{content.decode('utf-8', 'replace')}")
    return texts


def _sketch(texts: Iterable[str], *, words: int) -> tuple[int, ...]:
    hashes: set[int] = set()
    for text in texts:
        found = _WORD.findall(text.lower())
        for start in range(max(1, len(found) - words + 1) if found else 0):
            shingle = " ".join(found[start : start + words])
            hashes.add(zlib.crc32(shingle.encode("utf-8", "replace")))
    return tuple(sorted(hashes)[:SKETCH])


def _packed(sketch: Sequence[int]) -> str:
    return "".join(f"{x:08x}" for x in sketch)


def _unpacked(text: str) -> tuple[int, ...]:
    return tuple(int(text[i : i + 8], 16) for i in range(0, len(text), 8))
