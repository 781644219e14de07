"""The dataset from what passed: near-duplicates, splits, manifest, card.

Made anew from the journal each time, in an order that doesn't depend on which session was ready
first: the same journal gives the same dataset.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness_adapters.synthesis.card import card
from harness_adapters.synthesis.gates.duplicates import Index
from harness_adapters.synthesis.journal import KEPT, CandidateRecord, SessionRecord
from harness_adapters.synthesis.manifest import write_manifest
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.tasks import Split, load_dataset, load_task
from harness_adapters.tasks.dataset import task_hash

_SHARES = ((Split.TEST, 0.15), (Split.VALIDATION, 0.15))
_SPLIT_LINE = re.compile(r'^split = ".*"$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Kept:
    """One task of the dataset."""

    record: CandidateRecord
    session: SessionRecord
    split: Split


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run came to."""

    out: Path
    sessions: tuple[SessionRecord, ...]
    """In the order of their keys; near-duplicates are marked."""
    tasks: tuple[Kept, ...]

    def funnel(self) -> dict[str, int]:
        """Sessions by outcome; the counts add up to all of them."""
        counts = Counter(each.outcome for each in self.sessions)
        order = [KEPT, *Reason]
        return {name: counts[name] for name in order if counts[name]}


def assemble(out: Path, records: Mapping[str, SessionRecord]) -> Summary:
    """Write the splits, the manifest, `funnel.json` and the card; what was there goes."""
    sessions = tuple(_without_duplicates(sorted(records.values(), key=_order)))
    splits = split_groups({each.group for each in sessions if each.outcome == KEPT})
    tasks = tuple(
        Kept(one, each, splits[each.group])
        for each in sessions
        for one in each.candidates
        if not one.reason
    )
    summary = Summary(out, sessions, tasks)
    for split in Split:
        place = out / split
        if place.exists():
            shutil.rmtree(place)
    for kept in tasks:
        _place(out, kept)
    if tasks:
        load_dataset(out)  # ids are unique and no two splits share an instance
    write_manifest(out, list(_rows(out, tasks)))
    _replace(out / "funnel.json", json.dumps(summary.funnel(), indent=1) + "\n")
    _replace(out / "README.md", card(summary.funnel(), sessions, [each.split for each in tasks]))
    return summary


def _order(record: SessionRecord) -> tuple[str, str, str]:
    return record.source, record.session, record.key


def _without_duplicates(sessions: list[SessionRecord]) -> Iterator[SessionRecord]:
    """The first of several tasks that are almost the same stays."""
    index = Index()
    for each in sessions:
        candidates = []
        for one in each.candidates:
            if not one.reason:
                sign = np.frombuffer(bytes.fromhex(one.signature), dtype=np.uint64)
                if near := index.near(sign):
                    detail = f"{near[1]:.0%} the same as {near[0]}"
                    one = replace(one, reason=Reason.NEAR_DUPLICATE, detail=detail)
                else:
                    index.add(one.id, sign)
            candidates.append(one)
        record = replace(each, candidates=tuple(candidates))
        if each.outcome == KEPT and all(one.reason for one in candidates):
            record = replace(record, outcome=Reason.NEAR_DUPLICATE, detail=candidates[0].detail)
        yield record


def split_groups(groups: set[str]) -> dict[str, Split]:
    """A split for each group of sessions: 15% test, 15% validation, the rest training.

    By the hash of the group's name, so that it looks like chance and is the same each time; from 3
    groups on no split is empty.
    """
    ordered = sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest())
    splits: dict[str, Split] = {}
    for split, share in _SHARES:
        count = max(round(share * len(ordered)), int(len(ordered) >= 3))
        for name in ordered[len(splits) : len(splits) + count]:
            splits[name] = split
    return {name: splits.get(name, Split.TRAIN) for name in ordered}


def _place(out: Path, kept: Kept) -> None:
    place = out / kept.split / kept.record.id
    shutil.copytree(out / ".synth" / "tasks" / kept.record.id, place)
    toml = place / "task.toml"
    text = toml.read_text("utf-8")
    toml.write_text(_SPLIT_LINE.sub(f'split = "{kept.split}"', text, count=1), "utf-8")


def _rows(out: Path, tasks: tuple[Kept, ...]) -> Iterator[dict[str, Any]]:
    """One row for each task: where it is from, and what its gates measured."""
    for kept in tasks:
        one, session = kept.record, kept.session
        facts = {name: value for gate in one.gates for name, value in gate.facts.items()}
        yield {
            "task": one.id,
            "split": kept.split,
            "type": one.type,
            "path": f"{kept.split}/{one.id}",
            "source": session.source,
            "format": session.format,
            "session": session.session,
            "first_turn": one.first_turn,
            "last_turn": one.last_turn,
            "licence": session.licence,
            "check": one.check,
            "sha256": task_digest(out / kept.split / one.id),
            "verifier_runs": one.scores,
            **{name: value for name, value in facts.items() if name not in ("licence", "failure")},
        }


def task_digest(root: Path) -> str:
    """sha256 over a task's files."""
    return task_hash(load_task(root))


def _replace(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)
