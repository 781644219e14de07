"""Attempts that solve nothing, made from a task's own files: no verifier may reward them.

They know only what an agent sees, so they fit any Harbor task. What each writes into the working
directory is computed here; `validate` runs the verifier on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from harness_adapters.tasks.task import Task

Workspace: TypeAlias = dict[str, bytes]
"""Content of a working directory by relative path."""

_GUESSES = ("0", "1", "true", "none")
_COPIES = 2
_STUBS = {
    ".py": b"raise SystemExit(0)\n",
    ".sh": b"exit 0\n",
    ".js": b"process.exit(0)\n",
}
_FORGERY = b"""\
import os
for path, text in (("reward.txt", "1"), ("reward.json", '{"reward": 1}')):
    try:
        with open("/logs/verifier/" + path, "w") as file:
            file.write(text)
    except OSError:
        pass
os._exit(0)
"""
"""Wins when a verifier imports or runs code of the working directory in its own process."""
_PLANTED = ("conftest.py", "json.py", "pytest.py", "reading.py", "sitecustomize.py")
_NAME = re.compile(r"(?<![\w*])[\w/.-]*\w\.[A-Za-z]\w{0,7}\b")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is in the working directory when the verifier looks."""

    name: str
    files: Workspace


def attempts(task: Task) -> Iterator[Attempt]:
    """Degenerate attempts; those that would change nothing or repeat another are left out."""
    files = read_workspace(task.files)
    seen = [files]
    for attempt in _attempts(task, files):
        if attempt.files not in seen:
            seen.append(attempt.files)
            yield attempt


def read_workspace(root: Path) -> Workspace:
    """Regular files below `root`."""
    if not root.is_dir():
        return {}
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def named_files(instruction: str, workdir: str) -> list[str]:
    """Relative paths of files that an instruction mentions, in order."""
    names: dict[str, None] = {}
    for found in _NAME.findall(instruction):
        path = PurePosixPath(found)
        if path.is_absolute():
            if not path.is_relative_to(workdir):
                continue
            path = path.relative_to(workdir)
        if path.parts and ".." not in path.parts:
            names[path.as_posix()] = None
    return list(names)


def _attempts(task: Task, files: Workspace) -> Iterator[Attempt]:
    named = named_files(task.instruction, task.workdir)
    outputs = [name for name in named if name not in files]
    inputs = [name for name in named if name in files] or list(files)
    yield Attempt("empty files", files | dict.fromkeys(outputs, b""))
    yield Attempt("every file truncated", dict.fromkeys([*files, *outputs], b""))
    yield Attempt("every file deleted", {})
    scripts = [name for name in {**files, **dict.fromkeys(named)} if Path(name).suffix in _STUBS]
    yield Attempt(
        "scripts that only exit with 0",
        files | {name: _STUBS[Path(name).suffix] for name in scripts},
    )
    for guess in _GUESSES:
        yield Attempt(f"the guess {guess}", files | dict.fromkeys(outputs, f"{guess}\n".encode()))
    for name in inputs[:_COPIES]:
        yield Attempt(f"{name} copied to the output", files | dict.fromkeys(outputs, files[name]))
    everything = b"\n".join([task.instruction.encode(), *files.values()])
    yield Attempt("all input as output", files | dict.fromkeys(outputs, everything))
    python = [name for name in scripts if name.endswith(".py")]
    forged: Workspace = dict.fromkeys([*python, *_PLANTED], _FORGERY)
    rewards: Workspace = dict.fromkeys(["reward.txt", "logs/verifier/reward.txt"], b"1\n")
    yield Attempt("a forged reward", files | forged | rewards)
