"""Repair: a check of a Python project that failed and then passed, with the same command.

Either its tests, which are hidden, or a program that stopped with an error and then printed what
was wanted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from harness_adapters.synthesis.candidate import (
    Candidate,
    Check,
    CheckKind,
    Provenance,
    TaskType,
)
from harness_adapters.synthesis.harbor import is_test_file
from harness_adapters.synthesis.miners import Found, Refusal
from harness_adapters.synthesis.miners.checks import is_test_run, output_of, passed
from harness_adapters.synthesis.miners.projects import said_after
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.session import ToolKind

_PROGRAM = re.compile(r"(?:cd\s+\S+\s*&&\s*)?python3?\s+(?!-)[\w./-]+\.py(?:\s+[\w./=-]+)*\s*")
_BEGUN = (
    "This was begun, and what is there doesn't do it yet. Find what is wrong in {files} and "
    "correct it; leave names and parameters as they are."
)


def repairs(line: Timeline, licence: str) -> Iterable[Found]:
    """Each stretch from a failing to a passing run of one check."""
    for fail, success in _pairs(line, is_test_run, same_command=False):
        yield _repair(line, fail, success, CheckKind.PYTHON_TESTS, licence)
    for fail, success in _pairs(line, _is_program, same_command=True):
        yield _repair(line, fail, success, CheckKind.OUTPUT, licence)


def _is_program(step: Step) -> bool:
    command = step.call.command or ""
    return (
        step.call.kind is ToolKind.SHELL
        and bool(_PROGRAM.fullmatch(command))
        and not is_test_run(step)
    )


def _pairs(
    line: Timeline, wanted: Callable[[Step], bool], *, same_command: bool
) -> Iterator[tuple[Step, Step]]:
    """The first failure of each stretch, and the run that ended it."""
    failing: dict[str, Step] = {}
    for step in line.steps:
        if not wanted(step) or step.request < 0:
            continue
        key = step.call.command or "" if same_command else ""
        ended = passed(step)
        if ended is False:
            failing.setdefault(key, step)
        elif ended is True and key in failing:
            yield failing.pop(key), step


def _repair(line: Timeline, fail: Step, success: Step, kind: CheckKind, licence: str) -> Found:
    start, end = line.files_before(fail.number), line.files_before(success.number)
    tests = {path: text for path, text in end.items() if is_test_file(path)}
    changed = {
        path: text
        for path, text in end.items()
        if not is_test_file(path) and start.get(path) != text
    }
    gone = [path for path in start if path not in end and not is_test_file(path)]
    if not changed and not gone:
        return Refusal(TaskType.REPAIR, Reason.STATE_UNKNOWN, "no known change between the runs")
    if kind is CheckKind.PYTHON_TESTS and not tests:
        return Refusal(TaskType.REPAIR, Reason.STATE_UNKNOWN, "the tests aren't in the log")
    if lost := line.lost_before(success.number) & {*tests, *changed, *start}:
        detail = f"{sorted(lost)[0]}: a command may have changed it"
        return Refusal(TaskType.REPAIR, Reason.STATE_UNKNOWN, detail)
    request = line.requests[fail.request]
    instruction = request.text.strip()
    own = {
        path
        for path in changed
        if line.files_before(line.span(fail.request)[0].number).get(path) != start.get(path)
    }
    if own:
        instruction += "\n\n" + _BEGUN.format(files=", ".join(f"`{path}`" for path in changed))
    hidden = tests if kind is CheckKind.PYTHON_TESTS else {}
    return Candidate(
        type=TaskType.REPAIR,
        instruction=line.local(instruction),
        before={path: text.encode() for path, text in start.items() if path not in hidden},
        after={
            **{path: text.encode() for path, text in changed.items()},
            **dict.fromkeys(gone),
        },
        hidden={path: text.encode() for path, text in hidden.items()},
        check=Check(
            kind,
            line.local(success.call.command or ""),
            expected=output_of(success) if kind is CheckKind.OUTPUT else "",
            failure=output_of(fail)[-2000:],
        ),
        provenance=Provenance(
            source=line.session.source,
            format=line.session.format,
            session=line.session.id,
            licence=licence,
            first_turn=fail.turn,
            last_turn=success.turn,
        ),
        later=said_after(line, fail.request),
    )
