"""One task in Harbor format (task.toml schema 1.x), read strictly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from harness_adapters.errors import TaskError
from harness_adapters.tasks.links import check_links
from harness_adapters.tasks.schema import (
    DEFAULT_WORKDIR,
    TaskGuard,
    read_config,
    read_environment,
    read_text,
)


class Split(StrEnum):
    """Which part of a dataset a task belongs to."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Shell:
    """Run one command with bash in the working directory."""

    command: str


@dataclass(frozen=True, slots=True)
class WriteFile:
    """Create or replace a file; `path` is relative to the working directory."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace the only occurrence of `old` in a file by `new`."""

    path: str
    old: str
    new: str


Action: TypeAlias = Shell | WriteFile | Edit
"""One step of a scripted oracle, free of any harness's tool names."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task directory, read and checked. Paths are absolute."""

    id: str
    root: Path
    instruction: str
    workdir: str
    family: str
    level: int
    seed: int
    split: Split
    agent_timeout: float
    verifier_timeout: float
    memory_mb: int
    oracle: tuple[Action, ...]
    """From `solution/oracle.json`; empty where the task has only a `solve.sh`."""
    confined_modules: tuple[str, ...] = ()
    """Modules of the agent's that the tests import, to be run in a confined child."""
    guard: TaskGuard = field(default_factory=TaskGuard)
    """What it adds to the guard's policy."""
    session: str = ""
    """The recorded session that the task was made from; never in two splits."""

    @property
    def kind(self) -> str:
        """Family and level: `sort_lines/2`."""
        return f"{self.family}/{self.level}"

    @property
    def files(self) -> Path:
        """Directory whose content is copied into the agent's working directory; may be missing."""
        return self.root / "environment" / "files"

    @property
    def lowers(self) -> list[Path]:
        """What a sandbox's working directory shows at first: `files` where there are any."""
        return [self.files] if self.files.is_dir() else []

    @property
    def tests(self) -> Path:
        """Directory that only the verifier sees."""
        return self.root / "tests"

    @property
    def solution(self) -> Path:
        """Directory that only the oracle check sees."""
        return self.root / "solution"


_ACTION_NAMES: dict[str, type[Action]] = {"shell": Shell, "write_file": WriteFile, "edit": Edit}
_REQUIRED = ("task.toml", "instruction.md", "tests/test.sh")


def load_task(root: Path) -> Task:
    """Read a task directory. Raises TaskError naming the file, the key and what to do."""
    root = root.absolute()
    if not root.is_dir():
        raise TaskError(f"{root}: no such directory; give the path of a Harbor task directory")
    check_links(root)
    for name in _REQUIRED:
        if not (root / name).is_file():
            raise TaskError(f"{root / name}: missing; a Harbor task needs {', '.join(_REQUIRED)}")
    files = root / "environment" / "files"
    if files.exists() and not files.is_dir():
        raise TaskError(f"{files}: not a directory; it must hold what the agent is to find")
    config = read_config(root / "task.toml")
    image_workdir = read_environment(root / "environment")
    instruction = read_text(root / "instruction.md").strip()
    if not instruction:
        raise TaskError(f"{root / 'instruction.md'}: empty; write what the agent is to do")
    metadata = config.metadata
    return Task(
        id=root.name,
        root=root,
        instruction=instruction,
        workdir=config.environment.workdir or image_workdir or DEFAULT_WORKDIR,
        family=metadata.family or metadata.category or root.name,
        level=metadata.level_or_difficulty,
        seed=metadata.seed,
        split=Split(metadata.split),
        agent_timeout=config.agent.timeout_sec,
        verifier_timeout=config.verifier.timeout_sec,
        memory_mb=config.environment.memory_mb,
        oracle=_read_oracle(root / "solution" / "oracle.json"),
        confined_modules=tuple(metadata.confined_modules),
        guard=metadata.guard,
        session=metadata.source_session,
    )


def oracle_json(actions: Sequence[Action]) -> str:
    """The text of `solution/oracle.json`: a list of flat objects, `action` names the kind."""
    names = {kind: name for name, kind in _ACTION_NAMES.items()}
    steps = [{"action": names[type(action)], **asdict(action)} for action in actions]
    return json.dumps(steps, indent=2, ensure_ascii=False) + "\n"


def _read_oracle(path: Path) -> tuple[Action, ...]:
    """Actions of `solution/oracle.json`; empty where the file is missing."""
    if not path.exists():
        return ()
    try:
        steps = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise TaskError(f"{path}: not JSON ({error}); write a list of actions") from None
    if not isinstance(steps, list) or not steps:
        raise TaskError(f"{path}: must be a non-empty list of actions")
    return tuple(_action(path, index, step) for index, step in enumerate(steps))


def _action(path: Path, index: int, step: object) -> Action:
    where = f"{path}: step {index}"
    if not isinstance(step, dict):
        raise TaskError(f'{where}: must be an object such as {{"action": "shell", "command": …}}')
    kind = _ACTION_NAMES.get(str(step.get("action")))
    if kind is None:
        raise TaskError(f"{where}: action must be one of {', '.join(_ACTION_NAMES)}")
    values = {key: value for key, value in step.items() if key != "action"}
    expected = {field.name for field in fields(kind)}
    if set(values) != expected or not all(isinstance(value, str) for value in values.values()):
        raise TaskError(
            f"{where}: {step['action']} needs exactly the texts {', '.join(sorted(expected))}"
        )
    return kind(**values)
