"""Writes a candidate as a task directory in Harbor format."""

from __future__ import annotations

import json
import shlex
from importlib import resources
from pathlib import Path

from harness_adapters.synthesis.candidate import ANSWER_FILE, Candidate, CheckKind
from harness_adapters.tasks import Action, Shell, Split, Task, WriteFile, load_task
from harness_adapters.tasks.layout import DOCKERFILE, verifier_script
from harness_adapters.tasks.task import oracle_json

_PACKAGE = resources.files("harness_adapters.synthesis") / "checkers"
_STARTER = resources.files("harness_adapters.tasks.starter") / "checkers"
_MODULES = {
    "verify": _PACKAGE,
    "confined_command": _PACKAGE,
    "run_python_tests": _PACKAGE,
    "pytest_subset": _PACKAGE,
    "confined": _STARTER,
    "reading": _STARTER,
    "answer_is": _STARTER,
    "number_in_file": _STARTER,
}
_USED = {
    CheckKind.PYTHON_TESTS: ("run_python_tests", "pytest_subset"),
    CheckKind.OUTPUT: (),
    CheckKind.ANSWER: ("answer_is", "number_in_file"),
}
_COMMON = ("verify", "confined_command", "confined", "reading")

_TASK_TOML = """\
schema_version = "1.1"

[metadata]
category = "{type}"
family = "{type}"
difficulty = "medium"
level = 1
split = {split}
source = {source}
format = {format}
session = {session}
license = {licence}

[agent]
timeout_sec = 600.0

[verifier]
timeout_sec = {verifier:.1f}

[environment]
cpus = 1
memory_mb = 2048
"""
CHECK_SECONDS = 30.0
"""Of the processor, for each process of the hidden check; four times as many may pass meanwhile."""


def write(candidate: Candidate, root: Path, split: Split = Split.TRAIN) -> Task:
    """Write `root`, a new directory, and read it back. Raises TaskError where that fails."""
    for path, content in _contents(candidate, split).items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (root / "environment" / "files").mkdir(exist_ok=True)
    for script in ("solution/solve.sh", "tests/test.sh"):
        (root / script).chmod(0o755)
    return load_task(root)


def _contents(candidate: Candidate, split: Split) -> dict[str, bytes]:
    provenance = candidate.provenance
    toml = _TASK_TOML.format(
        type=candidate.type,
        split=json.dumps(split),
        source=json.dumps(provenance.source),
        format=json.dumps(provenance.format),
        session=json.dumps(provenance.session),
        licence=json.dumps(provenance.licence),
        verifier=4 * CHECK_SECONDS + 60,
    )
    modules = [*_COMMON, *_USED[candidate.check.kind]]
    actions = oracle(candidate)
    return {
        "task.toml": toml.encode(),
        "instruction.md": candidate.instruction.strip().encode() + b"\n",
        "environment/Dockerfile": DOCKERFILE.encode(),
        **{f"environment/files/{path}": content for path, content in candidate.before.items()},
        "solution/solve.sh": _solve_script(candidate).encode(),
        **({"solution/oracle.json": oracle_json(actions).encode()} if actions else {}),
        "tests/test.sh": verifier_script("verify.py").encode(),
        "tests/expected.json": json.dumps(_expected(candidate), indent=1).encode() + b"\n",
        **{f"tests/{name}.py": (_MODULES[name] / f"{name}.py").read_bytes() for name in modules},
        **{f"tests/hidden/{path}": content for path, content in candidate.hidden.items()},
        **{f"solution/files/{p}": c for p, c in candidate.after.items() if c is not None},
    }


def _expected(candidate: Candidate) -> dict[str, object]:
    """What `verify.py` is called with."""
    check = candidate.check
    match check.kind:
        case CheckKind.PYTHON_TESTS:
            return {"kind": check.kind, "tests": test_files(candidate), "seconds": CHECK_SECONDS}
        case CheckKind.OUTPUT:
            return {
                "kind": check.kind,
                "command": check.command,
                "stdout": check.expected,
                "seconds": CHECK_SECONDS,
            }
        case CheckKind.ANSWER:
            return {"kind": check.kind, "path": ANSWER_FILE, "text": check.expected}


def test_files(candidate: Candidate) -> list[str]:
    """Those of the hidden files that hold tests; the others are what they need."""
    return [path for path in sorted(candidate.hidden) if is_test_file(path)]


def is_test_file(path: str) -> bool:
    """Whether pytest and unittest would take a path for a file of Python tests."""
    name = path.rsplit("/", 1)[-1]
    stem = name.removesuffix(".py")
    return name.endswith(".py") and (
        stem.startswith("test_") or stem.endswith("_test") or stem in ("test", "tests")
    )


def oracle(candidate: Candidate) -> tuple[Action, ...]:
    """The work as single actions, for demonstrations."""
    if candidate.check.kind is CheckKind.ANSWER:
        return (Shell(f"({candidate.oracle_command}\n) > {ANSWER_FILE}"),)
    actions: list[Action] = []
    for path, content in candidate.after.items():
        if content is None:
            actions.append(Shell(f"rm -f -- {shlex.quote(path)}"))
        else:
            actions.append(WriteFile(path, content.decode()))
    return tuple(actions)


def _solve_script(candidate: Candidate) -> str:
    lines = ["#!/bin/bash", "set -e"]
    if candidate.check.kind is CheckKind.ANSWER:
        return "\n".join([*lines, f"({candidate.oracle_command}\n) > {ANSWER_FILE}"]) + "\n"
    for path, content in candidate.after.items():
        quoted = shlex.quote(path)
        if content is None:
            lines.append(f"rm -f -- {quoted}")
            continue
        if "/" in path:
            lines.append(f"mkdir -p -- {shlex.quote(path.rsplit('/', 1)[0])}")
        lines.append(f'cp -- "$(dirname "$0")"/files/{quoted} {quoted}')
    return "\n".join(lines) + "\n"
