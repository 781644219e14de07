from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.errors import TaskError
from harness_adapters.tasks import Split, Task, load_task
from harness_adapters.tasks.degenerate import attempts
from harness_adapters.tasks.starter import FAMILIES, LEVELS, draft, write, write_task
from harness_adapters.tasks.task import oracle_json
from tasks.support import play, problems, tree, workspace

KINDS = [(name, level) for name in FAMILIES for level in LEVELS]


def _written(name: str, level: int, seed: int, place: Path) -> Task:
    write_task(place, draft(name, level, seed), Split.TRAIN, name, level, seed)
    return load_task(place)


def _check_task(task: Task, place: Path) -> None:
    """Null and degenerate attempts fail; the oracle's actions and its script both succeed."""
    assert problems(task, workspace(task, place / "null"))
    play(task, workspace(task, place / "oracle"))
    assert problems(task, place / "oracle") == []
    script = ["/bin/bash", str(task.solution / "solve.sh")]
    subprocess.run(
        script, cwd=workspace(task, place / "script"), check=True, stdout=subprocess.DEVNULL
    )
    assert tree(place / "script") == tree(place / "oracle")
    for number, attempt in enumerate(attempts(task)):
        root = place / str(number)
        root.mkdir()
        for path, content in attempt.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
        assert problems(task, root), attempt.name


def test_size_of_the_suite() -> None:
    assert len(FAMILIES) >= 20
    assert sum(family.test_only for family in FAMILIES.values()) >= 4
    assert {family.theme for family in FAMILIES.values()} >= {"logs", "tables", "code", "questions"}


@pytest.mark.parametrize(("name", "level"), KINDS)
def test_every_family_and_level(name: str, level: int, tmp_path: Path) -> None:
    task = _written(name, level, 11, tmp_path / "task")
    assert (task.family, task.level, task.seed) == (name, level, 11)
    assert (len(task.instruction) <= 160) and "\n" not in task.instruction
    assert 1 <= len(task.oracle) <= 3
    assert len(oracle_json(task.oracle)) <= 260
    _check_task(task, tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "level"), KINDS)
def test_every_family_and_level_many_seeds(name: str, level: int, tmp_path: Path) -> None:
    for seed in range(100, 125):
        _check_task(
            _written(name, level, seed, tmp_path / str(seed) / "task"), tmp_path / str(seed)
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_instances_are_distinct(name: str) -> None:
    for level in LEVELS:
        drafts = [draft(name, level, seed) for seed in range(1000)]
        assert len({(d.instruction, json.dumps(d.files)) for d in drafts}) >= 990
        assert len({d.instruction for d in drafts}) >= 700
        assert len({oracle_json(d.oracle) for d in drafts}) >= 600


@given(st.sampled_from(KINDS), st.integers(0, 10**8))
@settings(max_examples=50)
def test_drafts_are_a_function_of_their_arguments(kind: tuple[str, int], seed: int) -> None:
    assert draft(*kind, seed) == draft(*kind, seed)


@given(st.sampled_from(KINDS), st.integers(0, 10**8))
@settings(max_examples=50)
def test_instructions_name_files_and_never_leak_the_expected_values(
    kind: tuple[str, int], seed: int
) -> None:
    one = draft(*kind, seed)
    assert one.checks and one.oracle
    assert all(not path.startswith("/") and ".." not in path for path in one.files)
    for check in one.checks:
        if check["kind"] == "number_in_file":
            assert check["path"] in one.instruction
            assert check["value"] >= 2  # no constant guess may win


def test_writing_is_deterministic(tmp_path: Path) -> None:
    sizes = {"train": 20, "validation": 10, "test": 10, "seed": 3}
    one, two = write(tmp_path / "a", **sizes), write(tmp_path / "b", **sizes)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert one.content_hash == two.content_hash
    assert write(tmp_path / "c", **{**sizes, "seed": 4}).content_hash != one.content_hash


def test_the_test_split_does_not_depend_on_the_others(tmp_path: Path) -> None:
    one = write(tmp_path / "a", train=0, validation=0, test=30)
    two = write(tmp_path / "b", train=50, validation=20, test=30)
    assert tree(one.root / "test") == tree(two.root / "test")


def test_default_sizes_spread_evenly_and_disjoint(tmp_path: Path) -> None:
    dataset = write(tmp_path / "a")
    sizes = {split: dataset.split(split) for split in Split}
    assert [len(sizes[split]) for split in Split] == [600, 60, 200]
    kinds = {s: Counter((task.family, task.level) for task in sizes[s]) for s in Split}
    for split in Split:
        assert max(kinds[split].values()) - min(kinds[split].values()) <= 1
    assert len(kinds[Split.TRAIN]) == 3 * sum(not f.test_only for f in FAMILIES.values())
    assert len(kinds[Split.TEST]) == len(KINDS)
    unseen = {family for family, _ in kinds[Split.TEST]} - {f for f, _ in kinds[Split.TRAIN]}
    assert unseen == {name for name, family in FAMILIES.items() if family.test_only}
    tasks = dataset.tasks
    assert len({task.instruction for task in tasks}) == len(tasks)
    assert len({task.oracle for task in tasks}) == len(tasks)
    assert len({(task.family, task.level, task.seed) for task in tasks}) == len(tasks)


def test_chosen_families_and_levels(tmp_path: Path) -> None:
    dataset = write(
        tmp_path / "a", train=4, validation=0, test=2, families=["csv_sum"], levels=[1, 2]
    )
    assert dataset.families() == ("csv_sum",)
    assert Counter(task.level for task in dataset.split(Split.TRAIN)) == {1: 2, 2: 2}


def test_an_interrupted_write_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    half = tmp_path / ".a.partial" / "test" / "x"
    half.mkdir(parents=True)
    assert len(write(tmp_path / "a", train=1, validation=0, test=1).tasks) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"families": ["no_such"]}, "no starter family 'no_such'"),
        ({"levels": [4]}, "levels 1, 2 and 3"),
        ({"families": ["lower_case"]}, "no family for the validation split"),
        ({"families": ["delete_lines"], "levels": [2], "test": 3000}, "ask for fewer tasks"),
    ],
)
def test_wrong_arguments(tmp_path: Path, arguments: dict, says: str, monkeypatch) -> None:
    monkeypatch.setattr("harness_adapters.tasks.starter.writing.write_task", lambda *_: None)
    monkeypatch.setattr("harness_adapters.tasks.starter.writing._TRIES", 1)
    with pytest.raises(TaskError, match=says):
        write(tmp_path / "a", **arguments)


def test_an_occupied_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(TaskError, match="not empty"):
        write(tmp_path)
    assert tree(tmp_path) == {"mine.txt": b"x"}
