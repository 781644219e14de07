"""The committed examples: sessions of the real agents, and the tasks that were made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness_adapters.synthesis.gates.strength import tidy
from harness_adapters.synthesis.incoming import Incoming, incoming
from harness_adapters.synthesis.journal import KEPT
from harness_adapters.synthesis.miners import Refusal
from harness_adapters.synthesis.miners.all import MINERS
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.privacy import cleaned
from harness_adapters.tasks import Split, load_dataset
from harness_adapters.tasks.dataset import task_hash
from harness_adapters.tasks.validate import validate

EXAMPLES = Path(__file__).parents[2] / "examples"
MANIFEST = [
    json.loads(line)
    for line in (EXAMPLES / "dataset" / "manifest.jsonl").read_text("utf-8").splitlines()
]


def test_sessions_of_the_three_agents_and_four_types_of_tasks_are_there() -> None:
    formats = {one.session.format for one in incoming([str(EXAMPLES / "sessions")])
               if isinstance(one, Incoming)}  # fmt: skip
    assert formats == {"pi", "opencode", "hermes"}
    assert {row["type"] for row in MANIFEST} == {"repair", "build", "extend", "qa"}
    assert {row["split"] for row in MANIFEST} == set(Split)


def test_the_manifest_is_true() -> None:
    tasks = {task.id: task for task in load_dataset(EXAMPLES / "dataset").tasks}
    assert {row["task"]: row["sha256"] for row in MANIFEST} == {
        name: task_hash(task) for name, task in tasks.items()
    }
    splits: dict[str, set[str]] = {}
    for row in MANIFEST:
        splits.setdefault(row["session"], set()).add(row["split"])
    assert all(len(each) == 1 for each in splits.values())
    funnel = json.loads((EXAMPLES / "dataset" / "funnel.json").read_text())
    assert funnel[KEPT] == len(splits)


def test_the_sessions_still_give_these_tasks() -> None:
    found = {
        cleaned(tidy(one))[0].id
        for each in incoming([str(EXAMPLES / "sessions")])
        if isinstance(each, Incoming)
        for miner in MINERS
        for one in miner(Timeline(each.session), "Apache-2.0")
        if not isinstance(one, Refusal)
    }
    assert {row["task"] for row in MANIFEST} <= found


@pytest.mark.heavy
async def test_the_tasks_are_sound() -> None:
    reports = await validate(load_dataset(EXAMPLES / "dataset"))
    assert {one.task.id: one.problems for one in reports if not one.ok} == {}
