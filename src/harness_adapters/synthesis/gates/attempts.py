"""Attempts at a synthesised task that solve nothing, beside those that fit any Harbor task."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness_adapters.synthesis.candidate import Candidate, CheckKind
from harness_adapters.synthesis.harbor import is_test_file
from harness_adapters.tasks import Task
from harness_adapters.tasks.degenerate import Attempt, attempts

_CONFTEST = b"""\
import pytest
import unittest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"


unittest.TestCase.run = lambda self, result=None: result and result.startTest(self)
"""
_PATCH = b"""\
import sys
import unittest

for name in dir(unittest.TestCase):
    if name.startswith("assert"):
        setattr(unittest.TestCase, name, lambda *a, **k: None)
unittest.TestCase.run = lambda self, result=None: result and result.startTest(self)
sys.excepthook = lambda *a: None
"""
_CONSTANTS = ("None", "0", "1", "True", "''", "[]", "{}")


def degenerate(candidate: Candidate, task: Task) -> Iterator[Attempt]:
    """All attempts that differ from the state before and from each other."""
    seen = [dict(candidate.before)]
    for attempt in (*_own(candidate), *attempts(task)):
        if attempt.files not in seen:
            seen.append(dict(attempt.files))
            yield attempt


def _own(candidate: Candidate) -> Iterator[Attempt]:
    before = dict(candidate.before)
    tests = [path for path in before if is_test_file(path)]
    yield Attempt("deleted tests", {p: c for p, c in before.items() if p not in tests})
    yield Attempt("a conftest that passes all", before | {"conftest.py": _CONFTEST})
    yield Attempt("a sitecustomize that passes all", before | {"sitecustomize.py": _PATCH})
    yield Attempt("tests that exit with 0", before | dict.fromkeys(tests, b"raise SystemExit(0)\n"))
    changed = [path for path in candidate.after if path.endswith(".py")]
    solved = candidate.solved()
    whole = {path: solved[path] for path in changed if path in solved}
    if patched := {path: _PATCH + source for path, source in _parsed(before, changed).items()}:
        yield Attempt("assertions switched off", before | patched)
    for constant in _CONSTANTS:
        stubs = {path: stub(source, constant) for path, source in whole.items()}
        yield Attempt(f"every function returns {constant}", before | stubs)
    if candidate.check.kind is CheckKind.OUTPUT:
        for name in changed or list(candidate.after):
            yield Attempt(f"{name} prints the instruction", before | {name: _echo(candidate)})


def _parsed(files: dict[str, bytes], paths: list[str]) -> dict[str, bytes]:
    return {path: files[path] for path in paths if path in files}


def stub(source: bytes, constant: str) -> bytes:
    """A module whose functions return a constant and whose top level does nothing else."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return b""
    value = ast.parse(constant, mode="eval").body
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Return(value=value)]
    tree.body = [
        node
        for node in tree.body
        if isinstance(
            node,
            ast.Import
            | ast.ImportFrom
            | ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.ClassDef
            | ast.Assign
            | ast.AnnAssign,
        )
    ]
    return (ast.unparse(ast.fix_missing_locations(tree)) + "\n").encode()


def _echo(candidate: Candidate) -> bytes:
    return f"print({candidate.instruction!r})\n".encode()
