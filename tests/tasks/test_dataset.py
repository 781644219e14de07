from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness_adapters.errors import TaskError
from harness_adapters.tasks import Split, load_dataset
from harness_adapters.tasks.dataset import instance_hash, task_hash
from tasks.support import make_task


def _task(root: Path, instruction: str, split: str = "train", family: str = "f") -> Path:
    make_task(root, f"[metadata]\nsplit = '{split}'\nfamily = '{family}'\n")
    (root / "instruction.md").write_text(instruction)
    return root


def test_tasks_at_any_depth_sorted(tmp_path: Path) -> None:
    _task(tmp_path / "z" / "b", "one")
    _task(tmp_path / "a" / "c", "two", "test", "g")
    _task(tmp_path / "d", "three", "validation")
    (tmp_path / ".hidden").mkdir()
    dataset = load_dataset(tmp_path)
    assert [task.id for task in dataset.tasks] == ["b", "c", "d"]
    assert [task.id for task in dataset.split(Split.TEST)] == ["c"]
    assert dataset.families() == ("f", "g")


def test_a_task_directory_is_a_dataset_of_one(tmp_path: Path) -> None:
    assert len(load_dataset(_task(tmp_path / "a", "x")).tasks) == 1


@pytest.mark.parametrize("name", ["", "missing"])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(TaskError, match=r"give a directory of Harbor tasks"):
        load_dataset(tmp_path / name)


def test_same_id_twice(tmp_path: Path) -> None:
    _task(tmp_path / "x" / "a", "one")
    _task(tmp_path / "y" / "a", "two")
    with pytest.raises(TaskError, match="two tasks have the id a"):
        load_dataset(tmp_path)


def test_splits_must_not_share_an_instance(tmp_path: Path) -> None:
    _task(tmp_path / "a", "one")
    _task(tmp_path / "b", "one", "test")
    with pytest.raises(TaskError, match="in two splits"):
        load_dataset(tmp_path)
    (tmp_path / "b" / "environment" / "files" / "notes.txt").write_text("eight\n")
    assert len(load_dataset(tmp_path).tasks) == 2


def test_hashes_follow_the_content_not_the_place(tmp_path: Path) -> None:
    _task(tmp_path / "one" / "a", "x")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    one, two = load_dataset(tmp_path / "one"), load_dataset(tmp_path / "two")
    assert one.content_hash == two.content_hash
    before = task_hash(two.tasks[0]), instance_hash(two.tasks[0])
    (two.tasks[0].tests / "test.sh").write_text("echo 1\n")
    again = load_dataset(tmp_path / "two")
    assert task_hash(again.tasks[0]) != before[0]
    assert instance_hash(again.tasks[0]) == before[1]
    assert again.content_hash != one.content_hash
