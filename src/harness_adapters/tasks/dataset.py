"""Many tasks below one directory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness_adapters.errors import TaskError
from harness_adapters.tasks.task import Split, Task, load_task


@dataclass(frozen=True)
class Dataset:
    """Task directories below `root`, sorted by id; ids are unique and splits are disjoint."""

    root: Path
    tasks: tuple[Task, ...]

    def split(self, split: Split) -> tuple[Task, ...]:
        """Tasks of one split, sorted by id."""
        return tuple(task for task in self.tasks if task.split is split)

    def families(self) -> tuple[str, ...]:
        """Names of all families, sorted."""
        return tuple(sorted({task.family for task in self.tasks}))

    @cached_property
    def content_hash(self) -> str:
        """sha256 over ids and files of all tasks: two datasets with one hash are the same."""
        digest = hashlib.sha256()
        for task in self.tasks:
            digest.update(f"{task.id}\0{task_hash(task)}\n".encode())
        return digest.hexdigest()


def load_dataset(path: Path) -> Dataset:
    """Read every task directory at or below `path`. Raises TaskError for the first that is wrong.

    A directory that holds a `task.toml` is a task; what lies inside it is not searched. Hidden
    directories are skipped.
    """
    path = path.absolute()
    if not path.is_dir():
        raise TaskError(f"{path}: no such directory; give a directory of Harbor tasks")
    tasks = sorted((load_task(root) for root in _task_roots(path)), key=lambda task: task.id)
    if not tasks:
        raise TaskError(f"{path}: no task.toml below it; give a directory of Harbor tasks")
    check_disjoint(tasks)
    return Dataset(path, tuple(tasks))


def _task_roots(path: Path) -> list[Path]:
    if (path / "task.toml").exists():
        return [path]
    roots: list[Path] = []
    for child in sorted(path.iterdir()):
        if child.is_dir() and not child.is_symlink() and not child.name.startswith("."):
            roots += _task_roots(child)
    return roots


def check_disjoint(tasks: list[Task]) -> None:
    """Raise TaskError when two tasks share an id, or two splits share an instruction + files."""
    by_id: dict[str, Task] = {}
    by_content: dict[str, Task] = {}
    for task in tasks:
        if (other := by_id.setdefault(task.id, task)) is not task:
            raise TaskError(
                f"{task.root} and {other.root}: two tasks have the id {task.id}; rename one"
            )
        other = by_content.setdefault(instance_hash(task), task)
        if other.split is not task.split:
            raise TaskError(
                f"{task.root} ({task.split}) and {other.root} ({other.split}): same instruction "
                "and files in two splits; remove one, or the evaluation sees training tasks"
            )


def instance_hash(task: Task) -> str:
    """sha256 of what an agent sees: the instruction and the files of its working directory."""
    digest = hashlib.sha256(task.instruction.encode())
    _add_files(digest, task.files)
    return digest.hexdigest()


def task_hash(task: Task) -> str:
    """sha256 over names, modes and content of all files of a task directory."""
    digest = hashlib.sha256()
    _add_files(digest, task.root)
    return digest.hexdigest()


def _add_files(digest: hashlib._Hash, root: Path) -> None:
    if not root.is_dir():
        return
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_symlink():
            content = b"link " + str(path.readlink()).encode()
        elif path.is_file():
            content = (b"x" if path.stat().st_mode & 0o100 else b"-") + path.read_bytes()
        else:
            continue
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
