"""Leak scan: nothing of the solution or the tests stands where the agent looks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from harness_adapters.synthesis.candidate import Candidate, CheckKind, TaskType
from harness_adapters.synthesis.gates.trial import Trial, Verdict, drop, passed
from harness_adapters.synthesis.harbor import is_test_file
from harness_adapters.synthesis.housekeeping import is_housekeeping
from harness_adapters.synthesis.reasons import Reason

_LINE = 16
"""A line of the solution counts as told when it has so many characters or more."""
_SENTENCE = 40
_SHARE = 0.5
"""So many of the tests' expected values may stand in an instruction: a few are examples."""


async def leaks(trial: Trial) -> Verdict:
    """The first leak that is found."""
    one = trial.candidate
    for scan in (_history, _solution, _tests, _expected, _later):
        verdict = scan(one)
        if verdict is not None:
            return verdict
    return passed()


def _history(one: Candidate) -> Verdict | None:
    found = next(filter(is_housekeeping, one.before), "")
    return drop(Reason.LEAK_HISTORY, f"{found} is among the agent's files") if found else None


def _solution(one: Candidate) -> Verdict | None:
    """A new line of the oracle that stands in the instruction, or several in another file."""
    told = {line.strip(" `") for line in one.instruction.splitlines()}
    for path, content in one.after.items():
        old = set(_lines(one.before.get(path, b"")))
        for line in _lines(content or b""):
            if line in old or len(line) < _LINE or not re.search(r"[^\W\d_]", line):
                continue
            if line in told or (len(line) >= 2 * _LINE and line in one.instruction):
                return drop(Reason.LEAK_SOLUTION, f"the instruction holds a line of {path}")
    return _copied(one)


def _copied(one: Candidate) -> Verdict | None:
    """Three new lines in a row of the oracle that stand together in a file that the agent sees."""
    stretches = {
        stretch: path
        for path, content in one.before.items()
        for stretch in _stretches(_lines(content))
    }
    for path, content in one.after.items():
        own = set(_stretches(_lines(one.before.get(path, b""))))
        for stretch in _stretches(_lines(content or b"")):
            other = stretches.get(stretch)
            if other is not None and stretch not in own:
                return drop(Reason.LEAK_SOLUTION, f"{other} holds lines of the solution of {path}")
    return None


def _stretches(lines: list[str]) -> Iterator[tuple[str, ...]]:
    long = [line for line in lines if len(line) >= _LINE and not _boilerplate(line)]
    return (tuple(long[i : i + 3]) for i in range(len(long) - 2))


def _boilerplate(line: str) -> bool:
    return line.startswith(("import ", "from ", "#", '"""', "if __name__", "}", "//"))


def _lines(content: bytes) -> list[str]:
    return [line.strip() for line in content.decode(errors="replace").splitlines()]


def _tests(one: Candidate) -> Verdict | None:
    """Hidden files, or the names of their tests, among what the agent sees."""
    for path, content in one.hidden.items():
        if one.before.get(path) == content:
            return drop(Reason.LEAK_TESTS, f"{path} lies among the agent's files")
    names = {
        node.name
        for path, content in one.hidden.items()
        if is_test_file(path)
        for node in ast.walk(_tree(content))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }
    visible = one.instruction
    for name in sorted(names):
        if re.search(rf"\b{re.escape(name)}\b", visible):
            return drop(Reason.LEAK_TESTS, f"the instruction names the hidden test {name}")
    return None


def _expected(one: Candidate) -> Verdict | None:
    """Values that the check expects, in the instruction."""
    if one.type is TaskType.QA or one.check.kind is CheckKind.ANSWER:
        told = re.search(
            rf"(?<![\w.]){re.escape(one.check.expected.strip())}(?![\w])", one.instruction
        )
        return drop(Reason.LEAK_ANSWER, "the instruction holds the answer") if told else None
    if one.check.kind is CheckKind.OUTPUT:
        lines = [line.strip() for line in one.check.expected.splitlines() if len(line.strip()) >= 4]
        told_lines = [line for line in lines if line in one.instruction]
        if lines and len(told_lines) / len(lines) > _SHARE:
            return drop(Reason.LEAK_ANSWER, "the instruction holds the expected output")
        return None
    values = {
        text
        for path, content in one.hidden.items()
        if is_test_file(path)
        for text in literals(_tree(content))
    }
    told_values = [value for value in values if value in one.instruction]
    if len(values) >= 2 and len(told_values) / len(values) > _SHARE:
        return drop(
            Reason.LEAK_ANSWER, f"the instruction holds {len(told_values)} of {len(values)} values"
        )
    return None


def literals(tree: ast.AST) -> Iterator[str]:
    """Texts and numbers of 4 characters or more that assertions compare with."""
    for node in ast.walk(tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare):
            compared = node.test.comparators
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr.startswith("assert")
        ):
            compared = node.args[1:]
        for part in compared:
            for leaf in ast.walk(part):
                if isinstance(leaf, ast.Constant) and not isinstance(leaf.value, bool | None):
                    text = str(leaf.value)
                    if len(text) >= 4:
                        yield text


def _tree(content: bytes) -> ast.AST:
    try:
        return ast.parse(content)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _later(one: Candidate) -> Verdict | None:
    """Sentences of the instruction that were only said after the work began."""
    said = " ".join(one.later.split())
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", one.instruction):
        text = " ".join(sentence.split())
        if len(text) >= _SENTENCE and text in said:
            return drop(Reason.LEAK_LATER, f"said later: {text[:100]!r}")
    return None
