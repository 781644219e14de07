"""Writes the starter suite as Harbor task directories, byte for byte the same for one seed."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import count, cycle, islice
from pathlib import Path

from harness_adapters.errors import TaskError
from harness_adapters.tasks.dataset import Dataset, load_dataset
from harness_adapters.tasks.layout import DOCKERFILE, verifier_script
from harness_adapters.tasks.starter.family import LEVELS, Draft
from harness_adapters.tasks.starter.suite import FAMILIES, draft, family
from harness_adapters.tasks.task import Action, Edit, Shell, Split, WriteFile, oracle_json

_CHECKERS = resources.files("harness_adapters.tasks.starter") / "checkers"
_HELPERS = {
    "files_state": ("file_equals",),
    "python_behaviour": ("confined",),
    "program_output": ("confined",),
}
"""Modules that a checker imports, besides `reading`."""

_SPLIT_SEEDS = {Split.TEST: 0, Split.VALIDATION: 1_000_000, Split.TRAIN: 2_000_000}
"""First seed of each split within one suite seed; also the order in which splits are drawn, so
that the test split doesn't depend on the sizes of the others."""
_SUITE_SEEDS = 10_000_000
_TRIES = 1000
"""Seeds tried for one new instance."""

_TASK_TOML = """\
schema_version = "1.1"

[metadata]
category = "{theme}"
difficulty = "{difficulty}"
family = "{family}"
level = {level}
seed = {seed}
split = "{split}"

[agent]
timeout_sec = 180.0

[verifier]
timeout_sec = 60.0

[environment]
cpus = 1
memory_mb = 1024
"""


def fingerprint() -> str:
    """A hash of the code that makes the suite: two suites of one seed and size may differ by it."""
    code = hashlib.sha256()
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        code.update(f"{file.name} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return code.hexdigest()


def write(
    out: Path,
    *,
    seed: int = 0,
    train: int = 600,
    validation: int = 60,
    test: int = 200,
    families: Sequence[str] | None = None,
    levels: Sequence[int] | None = None,
) -> Dataset:
    """Write `out/<split>/<family>-<level>-<seed>/` and read it back.

    Sizes are spread evenly over the family-levels of a split; the test split also has the
    test-only families. No two tasks share an instruction or an oracle, in any split. `out`
    appears when it is complete. Raises TaskError when it exists and isn't empty.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TaskError(f"{out}: exists and is not empty; choose another directory")
    partial = out.with_name(f".{out.name}.partial")
    if partial.exists():
        shutil.rmtree(partial)
    partial.mkdir(parents=True)
    chosen = [family(name) for name in families] if families else list(FAMILIES.values())
    wanted = tuple(levels) if levels else LEVELS
    sizes = {Split.TEST: test, Split.VALIDATION: validation, Split.TRAIN: train}
    seen: set[str] = set()
    for split, first_seed in _SPLIT_SEEDS.items():
        kinds = [
            (each.name, level)
            for each in chosen
            for level in wanted
            if split is Split.TEST or not each.test_only
        ]
        if sizes[split] > 0 and not kinds:
            raise TaskError(f"no family for the {split} split; choose one that isn't test-only")
        seeds = {kind: count(seed * _SUITE_SEEDS + first_seed) for kind in kinds}
        for kind, _ in zip(_spread(kinds), range(sizes[split]), strict=False):
            number, one = _fresh(kind, seeds[kind], seen)
            name = f"{kind[0]}-{kind[1]}-{number}"
            write_task(partial / split / name, one, split, kind[0], kind[1], number)
    partial.rename(out)
    return load_dataset(out)


def _spread(kinds: Sequence[tuple[str, int]]) -> Iterator[tuple[str, int]]:
    """All kinds in turn, for ever. A stride mixes families and levels when a round is cut short."""
    ordered = [kinds[i::7] for i in range(7)]
    return cycle([kind for part in ordered for kind in part])


def _fresh(kind: tuple[str, int], seeds: Iterator[int], seen: set[str]) -> tuple[int, Draft]:
    """The next instance whose instruction and oracle no earlier task has."""
    for number in islice(seeds, _TRIES):
        one = draft(*kind, number)
        keys = {one.instruction, oracle_json(one.oracle)}
        if not keys & seen:
            seen |= keys
            return number, one
    raise TaskError(
        f"the family {kind[0]}, level {kind[1]}, has no more new instances; ask for fewer tasks"
    )


def write_task(root: Path, one: Draft, split: Split, name: str, level: int, seed: int) -> None:
    """Write one task directory."""
    kinds = sorted({check["kind"] for check in one.checks})
    modules = {"check", "reading", *kinds}
    for kind in kinds:
        modules.update(_HELPERS.get(kind, ()))
    toml = _TASK_TOML.format(
        theme=family(name).theme,
        difficulty=("easy", "medium", "hard")[level - 1],
        family=name,
        level=level,
        seed=seed,
        split=split.value,
    )
    content: dict[str, str] = {
        "task.toml": toml,
        "instruction.md": f"{one.instruction}\n",
        "environment/Dockerfile": DOCKERFILE,
        "solution/oracle.json": oracle_json(one.oracle),
        "solution/solve.sh": solve_script(one.oracle, one.files),
        "tests/test.sh": verifier_script("check.py"),
        "tests/expected.json": json.dumps(one.checks, indent=1, ensure_ascii=False) + "\n",
        **{f"tests/{each}.py": (_CHECKERS / f"{each}.py").read_text() for each in sorted(modules)},
        **{f"environment/files/{path}": text for path, text in one.files.items()},
    }
    for path, text in content.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (root / "environment" / "files").mkdir(exist_ok=True)
    for script in ("solution/solve.sh", "tests/test.sh"):
        (root / script).chmod(0o755)


def solve_script(actions: Sequence[Action], files: Mapping[str, str]) -> str:
    """A bash script that does the same as the oracle's actions on `files`.

    An edit of a file is written as the file's whole new text.
    """
    lines = ["#!/bin/bash", "set -e"]
    for action in actions:
        match action:
            case Shell(command):
                lines.append(command)
            case WriteFile(path, content):
                lines += _write_lines(path, content)
            case Edit(path, old, new):
                text = files[path]
                if text.count(old) != 1:
                    raise TaskError(f"{path}: an edit must match once, found {text.count(old)}")
                lines += _write_lines(path, text.replace(old, new))
    return "\n".join(lines) + "\n"


def _write_lines(path: str, content: str) -> list[str]:
    parent = str(Path(path).parent)
    made = [f"mkdir -p {shlex.quote(parent)}"] if parent != "." else []
    return [*made, f"printf %s {shlex.quote(content)} > {shlex.quote(path)}"]
