"""Build and Extend: what a person asked for, with the tests that the session itself wrote.

The contract is the signatures and documentation of what the session built; its tests are hidden.
Work for which the session wrote no test is a draft: a model must write them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from harness_adapters.synthesis.candidate import (
    Candidate,
    Check,
    CheckKind,
    Provenance,
    TaskType,
)
from harness_adapters.synthesis.harbor import is_test_file
from harness_adapters.synthesis.miners import Draft, Found, Lack, Refusal
from harness_adapters.synthesis.miners.checks import is_test_run, passed
from harness_adapters.synthesis.miners.stubs import stub_module, with_stubs
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason

_CONTRACT = (
    "The signatures that are asked for stand in {files}, with bodies that raise "
    "NotImplementedError. Fill them in, and leave names and parameters as they are."
)

_FAULT = re.compile(
    r"\b(?:fix\w*|bugs?|broken|breaks?|fail(?:s|ed|ing|ures?)?|errors?|crash\w*|wrong|incorrect\w*"
    r"|regress\w*|exceptions?|tracebacks?|doesn'?t work|not working|repair\w*)\b",
    re.IGNORECASE,
)
_CODE = {
    ".go", ".ts", ".tsx", ".js", ".jsx", ".mjs", ".cjs", ".rs", ".java", ".kt", ".c", ".h", ".cc",
    ".cpp", ".cs", ".rb", ".php", ".swift", ".scala", ".sh", ".lua", ".ex", ".zig", ".css", ".html",
}  # fmt: skip


def build(line: Timeline, licence: str) -> Iterable[Found]:
    """The project of the first request, where it began with no Python file."""
    if not line.requests:
        return
    span = line.span(0)
    start = line.files_before(span[0].number) if span else {}
    if not _has_python(start):
        yield from _project(line, 0, TaskType.BUILD, {}, licence)


def extend(line: Timeline, licence: str) -> Iterable[Found]:
    """Each request on a project that was there, with no test that fails while it is worked on.

    A request that speaks of a fault is a repair whose failure nobody watched; whether the tests
    fail without the work, the gates find out.
    """
    for number, request in enumerate(line.requests):
        span = line.span(number)
        start = line.files_before(span[0].number) if span else {}
        if not _has_python(start):
            if number and span and (code := _other_code(line, number)):
                yield Refusal(TaskType.EXTEND, Reason.LANGUAGE, f"{code}: not Python")
            continue
        before = [step for step in line.steps if step.number < span[0].number]
        runs = [passed(step) for step in (*before, *span) if is_test_run(step)]
        if False in runs:
            if passed_last(before) is not True:
                continue  # a stretch from a failing to a passing run is `repairs`' own
            kind = TaskType.EXTEND
        else:
            kind = TaskType.REPAIR if _FAULT.search(request.text) else TaskType.EXTEND
        yield from _project(line, number, kind, start, licence)


def passed_last(steps: list[Step]) -> bool | None:
    """How the last test run among these ended; None where there was none or it isn't known."""
    runs = [step for step in steps if is_test_run(step)]
    return passed(runs[-1]) if runs else None


def _has_python(files: Mapping[str, str]) -> bool:
    return any(path.endswith(".py") for path in files)


def _project(
    line: Timeline, request: int, kind: TaskType, start: dict[str, str], licence: str
) -> Iterator[Found]:
    span = line.span(request)
    tested = any(is_test_run(step) for step in span)
    run = _last_pass(span)
    if tested and run is None:
        yield Refusal(kind, Reason.NO_WORK, "its tests didn't pass in the end")
        return
    last = run.number if run else line.end_of(request)
    end = line.files_before(last)
    tests = {path: text for path, text in end.items() if is_test_file(path)}
    fresh = [path for path, text in tests.items() if run and start.get(path) != text]
    changed = {
        path: text
        for path, text in end.items()
        if not is_test_file(path) and start.get(path) != text
    }
    if not _has_python(changed):
        if code := _other_code(line, request):
            yield Refusal(kind, Reason.LANGUAGE, f"{code}: not Python")
        return
    if lost := line.lost_before(last) & {*tests, *changed}:
        yield Refusal(
            kind, Reason.STATE_UNKNOWN, f"{sorted(lost)[0]}: a command may have changed it"
        )
        return
    before = dict(start)
    contracts = []
    for path, text in changed.items():
        stubbed = _contract(path, start.get(path), text)
        if stubbed is not None and stubbed != start.get(path):
            before[path] = stubbed
            contracts.append(f"`{path}`")
    asked = line.requests[request]
    instruction = asked.text.strip()
    if contracts:
        instruction += "\n\n" + _CONTRACT.format(files=", ".join(contracts))
    found = Candidate(
        type=kind,
        instruction=line.local(instruction),
        before={path: text.encode() for path, text in before.items() if path not in fresh},
        after={
            **{path: text.encode() for path, text in changed.items()},
            **{path: None for path in start if path not in end and not is_test_file(path)},
        },
        hidden={path: tests[path].encode() for path in tests if path in fresh},
        check=Check(
            CheckKind.PYTHON_TESTS,
            line.local(run.call.command or "") if run else "python3 -m unittest",
        ),
        provenance=Provenance(
            source=line.session.source,
            format=line.session.format,
            session=line.session.id,
            licence=licence,
            first_turn=asked.turn,
            last_turn=run.turn if run else span[-1].turn,
        ),
        later=said_after(line, request),
    )
    yield found if fresh else Draft(found, Lack.TESTS)


def _other_code(line: Timeline, request: int) -> str:
    """The first file of another language that a request's calls edited; empty: none."""
    span = line.span(request)
    if not span:
        return ""
    paths = line.replay.changed(span[0].number, line.end_of(request) - 1)
    code = sorted(path for path in paths if PurePosixPath(path).suffix in _CODE)
    return PurePosixPath(code[0]).name if code else ""


def _last_pass(span: list[Step]) -> Step | None:
    """The last test run of a request, if it passed."""
    runs = [step for step in span if is_test_run(step)]
    return runs[-1] if runs and passed(runs[-1]) is True else None


def _contract(path: str, old: str | None, new: str) -> str | None:
    if not path.endswith(".py"):
        return None
    return stub_module(new) if old is None else with_stubs(old, new)


def said_after(line: Timeline, request: int) -> str:
    """What people and the model said after a request was made."""
    texts = [one.text for one in line.requests[request + 1 :]]
    first = line.requests[request].turn
    texts += [turn.text for turn in line.session.path() if turn.index >= first]
    return "\n".join(text for text in texts if text)
