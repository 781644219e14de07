"""Running starter tasks without a sandbox: real commands, the real checkers, no isolation."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module, resources
from pathlib import Path

from harness_adapters.tasks import Edit, Shell, Task, WriteFile

CHECKERS = Path(str(resources.files("harness_adapters.tasks.starter"))) / "checkers"

MINIMAL_TOML = '[environment]\nnetwork_mode = "no-network"\n'


def checker(name: str):
    """A module of the verifier, imported as check.py does it."""
    if str(CHECKERS) not in sys.path:
        sys.path.insert(0, str(CHECKERS))
    return import_module(name)


def problems(task: Task, workdir: Path) -> list[str]:
    """What the task's verifier finds wrong, without starting a process for it."""
    return checker("check").problems(workdir, task.tests)


def workspace(task: Task, place: Path) -> Path:
    """A copy of the task's files."""
    shutil.copytree(task.files, place)
    return place


def play(task: Task, workdir: Path) -> None:
    """The oracle's actions, one by one, as an agent's tools would do them."""
    for action in task.oracle:
        match action:
            case Shell(command):
                done = subprocess.run(
                    ["/bin/bash", "-c", command], cwd=workdir, capture_output=True, text=True
                )
                assert done.returncode == 0 and not done.stderr, (command, done.stderr)
            case WriteFile(path, content):
                (workdir / path).parent.mkdir(parents=True, exist_ok=True)
                (workdir / path).write_text(content)
            case Edit(path, old, new):
                text = (workdir / path).read_text()
                assert text.count(old) == 1
                (workdir / path).write_text(text.replace(old, new))


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def make_task(
    root: Path, toml: str = MINIMAL_TOML, test: str = "echo 0 > /logs/verifier/reward.txt"
):
    """A small Harbor task directory."""
    for name, text in (
        ("task.toml", toml),
        ("instruction.md", "Write 7 to answer.txt.\n"),
        ("tests/test.sh", f"#!/bin/bash\n{test}\n"),
        ("solution/solve.sh", "#!/bin/bash\necho 7 > answer.txt\n"),
        ("environment/files/notes.txt", "seven\n"),
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root
