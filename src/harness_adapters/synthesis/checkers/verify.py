"""Verifier of a synthesised task: `python3 -I verify.py WORKDIR REWARD_FILE`.

Does what `expected.json` (beside this file) says, prints what is wrong, a last line `RESULT {…}`,
and writes 1 or 0. What the agent left runs in a confined child only, which can't read this
directory or write the reward. Needs nothing but the standard library (3.11 or newer).

For checks of a task itself, two variables change what must not matter: `CHECK_ORDER=reversed` runs
the tests the other way round, so that each pair of them is swapped, and `PYTHONHASHSEED` is passed
on.
"""

import ast
import json
import os
import secrets
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))  # -I leaves it out; the agent can't write there

import confined_command  # noqa: E402
from reading import lines_of, short  # noqa: E402

_SHOWN = 10


def python_tests(workdir: Path, tests: list[str], seconds: float) -> tuple[list[str], Any]:
    """Every hidden test must pass, and every one that the files define must have run."""
    place_hidden(TESTS / "hidden", workdir)
    wanted = {name for path in tests for name in defined(TESTS / "hidden" / path, path)}
    nonce = secrets.token_hex(16)
    order = os.environ.get("CHECK_ORDER")
    asked = {"nonce": nonce, "tests": tests, "order": order}
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        for name in ("run_python_tests.py", "pytest_subset.py"):
            shutil.copy(TESTS / name, scratch)
        argv = ["python3", "-s", "-P", "-B", f"{scratch}/run_python_tests.py"]
        done = confined_command.run(workdir, scratch, argv, json.dumps(asked), seconds)
    try:
        report = json.loads(done.stdout.splitlines()[-1])
        outcomes = report["outcomes"] if report["nonce"] == nonce else None
    except (ValueError, IndexError, KeyError, TypeError):
        outcomes = None
    if outcomes is None:
        why = done.problem or f"the tests did not run to their end: {done.complaint}"
        return [why], {"outcomes": [], "cpu_seconds": done.cpu_seconds}
    problems = [
        f"{one['test']}: {one['outcome']}: {one['detail']}"
        for one in outcomes
        if one["outcome"] != "passed"
    ]
    ran = {one["test"].split("[")[0] for one in outcomes}
    problems += [f"{name}: did not run" for name in sorted(wanted - ran)]
    if not wanted:
        problems.append("the hidden files define no test")
    if report["canary"] != "failed":
        problems.append("a test that must fail did not: the test machinery was changed")
    return problems, {"outcomes": outcomes, "cpu_seconds": done.cpu_seconds}


def output(workdir: Path, command: str, stdout: str, seconds: float) -> tuple[list[str], Any]:
    """A command exits with 0 and prints this; trailing blanks and empty last lines don't count."""
    hidden = TESTS / "hidden"
    if hidden.is_dir():
        place_hidden(hidden, workdir)
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        argv = ["/bin/bash", "-c", command]
        done = confined_command.run(workdir, scratch, argv, "", seconds)
    result = {
        "exit": done.returncode,
        "stdout": done.stdout[-2000:],
        "stderr": done.complaint,
        "cpu_seconds": done.cpu_seconds,
    }
    if done.problem:
        return [done.problem], result
    problems = []
    if done.returncode != 0:
        problems.append(f"{command}: exit code {done.returncode}: {done.complaint}")
    if lines_of(done.stdout) != lines_of(stdout):
        problems.append(f"{command}: printed {short(done.stdout)} instead of {short(stdout)}")
    return problems, result


def answer(workdir: Path, path: str, text: str) -> tuple[list[str], Any]:
    """The file holds the answer."""
    import answer_is
    import number_in_file

    try:
        value = float(text)
    except ValueError:
        return answer_is.check(workdir, path, [text]), {}
    return number_in_file.check(workdir, path, value, 0.0), {}


_KINDS = {"python_tests": python_tests, "output": output, "answer": answer}


def defined(source: Path, path: str) -> set[str]:
    """Names of the tests that a file defines, as the runner names them."""
    names = set()
    for node in ast.parse(source.read_bytes()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test"):
                names.add(f"{path}::{node.name}")
        elif isinstance(node, ast.ClassDef):
            names |= {
                f"{path}::{node.name}::{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
                and inner.name.startswith("test")
            }
    return names


def place_hidden(hidden: Path, workdir: Path) -> None:
    """Put the hidden files where they run, whatever lies there; links are not followed."""
    for source in sorted(hidden.rglob("*")):
        if not source.is_file():
            continue
        place = workdir
        parts = source.relative_to(hidden).parts
        for part in parts[:-1]:
            place = place / part
            if place.is_symlink() or (place.exists() and not place.is_dir()):
                place.unlink()
            place.mkdir(exist_ok=True)
        place = place / parts[-1]
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        shutil.copyfile(source, place)


def main() -> None:
    """Check, explain, write the reward."""
    workdir, reward = Path(sys.argv[1]), Path(sys.argv[2])
    expected = json.loads((TESTS / "expected.json").read_text(encoding="utf-8"))
    kind = expected.pop("kind")
    try:
        problems, result = _KINDS[kind](workdir, **expected)
    except Exception:
        problems, result = [f"the check itself failed:\n{traceback.format_exc()}"], {"broken": True}
    for problem in problems[:_SHOWN]:
        print(f"FAILED: {problem}")
    print("not solved" if problems else "solved")
    print("RESULT " + json.dumps(result))
    reward.write_text("0\n" if problems else "1\n")


if __name__ == "__main__":
    main()
