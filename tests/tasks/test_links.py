"""Links in task directories that others made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness_adapters.errors import TaskError
from harness_adapters.tasks import load_dataset, load_task
from tasks.support import make_task


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A task, and beside it a secret of this machine."""
    outside = tmp_path / "outside"
    (outside / "files").mkdir(parents=True)
    (outside / "secret").write_text("private\n")
    (outside / "oracle.json").write_text('[{"action": "shell", "command": "ls"}]')
    (outside / "test.sh").write_text("true\n")
    return make_task(tmp_path / "tasks" / "a")


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("instruction.md", "secret"),
        ("task.toml", "secret"),
        ("environment", "."),
        ("environment/files", "files"),
        ("environment/files", "missing"),
        ("environment/Dockerfile", "secret"),
        ("environment/files/notes.txt", "secret"),
        ("environment/files/below/deep", "secret"),
        ("environment/files/below", "files"),
        ("tests", "."),
        ("tests/test.sh", "test.sh"),
        ("tests/data", "files"),
        ("solution", "."),
        ("solution/oracle.json", "oracle.json"),
        ("solution/solve.sh", "missing"),
    ],
)
def test_a_link_that_leads_out_is_refused(
    root: Path, name: str, target: str, absolute: bool
) -> None:
    link = root / name
    if link.is_dir():
        shutil.rmtree(link)
    link.unlink(missing_ok=True)
    link.parent.mkdir(exist_ok=True)
    outside = root.parents[1] / "outside" / target
    ups = "../" * (len(link.relative_to(root.parents[1]).parts) - 1)
    link.symlink_to(outside if absolute else f"{ups}outside/{target}")
    assert link.resolve() == outside.resolve()
    with pytest.raises(TaskError) as error:
        load_task(root)
    assert str(error.value).startswith(f"{link}: ") and "symbolic link" in str(error.value)
    with pytest.raises(TaskError, match="symbolic link"):
        load_dataset(root.parent)


@pytest.mark.parametrize("target", ["../../tests/test.sh", "../../instruction.md", ".."])
def test_the_agents_files_may_not_point_at_the_rest_of_the_task(root: Path, target: str) -> None:
    (root / "environment" / "files" / "peek").symlink_to(target)
    with pytest.raises(TaskError, match=r"files/peek: .*leads out of .*environment/files"):
        load_task(root)


def test_the_agents_files_may_not_be_the_tests(root: Path) -> None:
    shutil.rmtree(root / "environment" / "files")
    (root / "environment" / "files").symlink_to("../tests")
    with pytest.raises(TaskError, match="put the directory itself in its place"):
        load_task(root)


def test_a_loop_is_refused(root: Path) -> None:
    (root / "tests" / "loop").symlink_to("loop")
    with pytest.raises(TaskError, match="tests/loop: a symbolic link"):
        load_task(root)


def test_links_that_stay_inside_are_fine(root: Path) -> None:
    files = root / "environment" / "files"
    (files / "below").mkdir()
    (files / "below" / "up").symlink_to("../notes.txt")
    (files / "again").symlink_to("below")
    (files / "to_be_mended").symlink_to("missing.txt")
    (root / "tests" / "same").symlink_to("test.sh")
    (root / "README").symlink_to("instruction.md")
    assert load_task(root).lowers == [files]


def test_a_task_may_be_reached_by_a_link(root: Path, tmp_path: Path) -> None:
    (root / "environment" / "files" / "alias").symlink_to("notes.txt")
    (tmp_path / "here").symlink_to(root)
    assert load_task(tmp_path / "here").id == "here"
