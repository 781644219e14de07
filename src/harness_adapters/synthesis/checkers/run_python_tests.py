"""Runs Python test files in one process and prints one JSON line with what became of each test.

Knows `unittest` and plain test functions and classes. `pytest_subset` stands in for `pytest`, also
where that is installed: a reward must not depend on the machine. Reads `{"nonce", "tests",
"order"}` from standard input. Everything that it needs is imported before the first line of the
candidate runs.
"""

import importlib.util
import inspect
import json
import os
import sys
import tempfile
import traceback
import types
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # -P leaves it out
import pytest_subset

sys.path.pop(0)
sys.modules["pytest"] = pytest_subset

Test = tuple[str, Callable[[], None]]
_ROOT = Path.cwd()


def main() -> None:
    """Run all tests, then a canary that must fail."""
    asked = json.loads(sys.stdin.read())
    out = os.dup(1)
    os.dup2(2, 1)
    paths = [_ROOT / path for path in asked["tests"]]
    sys.path[:0] = list(
        dict.fromkeys([str(_ROOT), str(_ROOT / "src"), *(str(path.parent) for path in paths)])
    )
    tests: list[Test] = []
    outcomes: list[dict[str, str]] = []
    for path in paths:
        name = path.relative_to(_ROOT).as_posix()
        try:
            module = load(path)
            tests += collect(module, name)
        except BaseException as error:
            outcomes.append(outcome_of(f"{name}::", error, path))
    if asked["order"] == "reversed":
        tests.reverse()
    for name, test in tests:
        outcomes.append(attempt(name, test))
    canary = attempt("canary", _canary)["outcome"]
    report = {"nonce": asked["nonce"], "outcomes": outcomes, "canary": canary}
    with os.fdopen(out, "w") as file:
        file.write("\n" + json.dumps(report) + "\n")
        file.flush()
        os._exit(0)  # threads that the candidate left don't keep us


def load(path: Path) -> types.ModuleType:
    """Import a test file, under its package's name where it lies in one."""
    parts = [path.stem]
    parent = path.parent
    while (parent / "__init__.py").is_file() and parent != _ROOT:
        parts.insert(0, parent.name)
        parent = parent.parent
    name = ".".join(parts)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def collect(module: types.ModuleType, path: str) -> Iterator[Test]:
    """The tests that a module defines itself."""
    for name, value in list(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and issubclass(value, unittest.TestCase):
            for case in unittest.defaultTestLoader.loadTestsFromTestCase(value):
                method = case.id().rsplit(".", 1)[-1]
                yield f"{path}::{name}::{method}", (lambda case=case: run_case(case))
        elif inspect.isclass(value) and name.startswith("Test"):
            for method, function in list(vars(value).items()):
                if method.startswith("test") and callable(function):
                    for label, call in pytest_subset.calls(module, function, value):
                        yield f"{path}::{name}::{method}{label}", call
        elif inspect.isfunction(value) and name.startswith("test"):
            for label, call in pytest_subset.calls(module, value, None):
                yield f"{path}::{name}{label}", call


class _Raising(unittest.TestResult):
    """Keeps the first exception itself, which the standard result turns into text."""

    first: BaseException | None = None

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802 - unittest's name
        super().addError(test, err)
        self.first = self.first or err[1]

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.first = self.first or err[1]


def run_case(case: unittest.TestCase) -> None:
    """One unittest method, with the fixtures of its class; raises what it raised."""
    result = _Raising()
    unittest.TestSuite([case]).run(result)
    if result.first is not None:
        raise result.first
    if result.skipped:
        raise unittest.SkipTest(result.skipped[0][1])
    if result.unexpectedSuccesses:
        raise AssertionError("an expected failure passed")
    if result.testsRun != 1:
        raise AssertionError("the test did not run")


def attempt(name: str, test: Callable[[], None]) -> dict[str, str]:
    """Run one test, in an empty temporary directory's neighbourhood, and name what happened."""
    try:
        test()
    except BaseException as error:
        return outcome_of(name, error, _ROOT / name.split("::")[0])
    return {"test": name, "outcome": "passed", "detail": "", "where": ""}


def outcome_of(name: str, error: BaseException, test_file: Path) -> dict[str, str]:
    """`failed` for an assertion, `skipped`, else `error` with where it was raised."""
    frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    own = [path for path in frames if path.is_relative_to(_ROOT)]
    where = "program" if own and own[-1] != test_file else "test"
    if isinstance(error, unittest.SkipTest):
        kind = "skipped"
    elif isinstance(error, AssertionError):
        kind = "failed"
    else:
        kind = "error"
    detail = f"{type(error).__name__}: {error}".strip()[:300]
    return {"test": name, "outcome": kind, "detail": detail, "where": where}


def _canary() -> None:
    class Canary(unittest.TestCase):
        def test(self) -> None:
            self.assertEqual(1, 2)

    run_case(Canary("test"))


if __name__ == "__main__":
    tempfile.tempdir = os.environ.get("TMPDIR")
    main()
