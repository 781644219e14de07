"""Build and Extend: what a person asked for, with the tests that the session itself wrote.

By rule alone: the contract is the signatures and documentation of what the session built; its tests
are hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness_adapters.synthesis.candidate import (
    Candidate,
    Check,
    CheckKind,
    Provenance,
    TaskType,
)
from harness_adapters.synthesis.harbor import is_test_file
from harness_adapters.synthesis.miners import Found, Refusal
from harness_adapters.synthesis.miners.checks import is_test_run, passed
from harness_adapters.synthesis.miners.stubs import stub_module, with_stubs
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason

_CONTRACT = (
    "The signatures that are asked for stand in {files}, with bodies that raise "
    "NotImplementedError. Fill them in, and leave names and parameters as they are."
)


def build(line: Timeline, licence: str) -> Iterable[Found]:
    """The project of the first request, where it began with no Python file."""
    if not line.requests:
        return
    span = line.span(0)
    start = line.files_before(span[0].number) if span else {}
    if any(path.endswith(".py") for path in start):
        return
    yield from _project(line, 0, TaskType.BUILD, {}, licence)


def extend(line: Timeline, licence: str) -> Iterable[Found]:
    """Each later request on a project whose tests passed before it."""
    for number in range(1, len(line.requests)):
        span = line.span(number)
        if not span:
            continue
        runs = [step for step in line.steps if step.number < span[0].number and is_test_run(step)]
        if not runs or passed(runs[-1]) is not True:
            continue
        start = line.files_before(span[0].number)
        yield from _project(line, number, TaskType.EXTEND, start, licence)


def _project(
    line: Timeline, request: int, kind: TaskType, start: dict[str, str], licence: str
) -> Iterator[Found]:
    span = line.span(request)
    run = _last_pass(span)
    if run is None:
        if any(is_test_run(step) for step in span):
            yield Refusal(kind, Reason.NO_WORK, "its tests didn't pass in the end")
        return
    end = line.files_before(run.number)
    tests = {path: text for path, text in end.items() if is_test_file(path)}
    fresh = [path for path, text in tests.items() if start.get(path) != text]
    changed = {
        path: text
        for path, text in end.items()
        if not is_test_file(path) and start.get(path) != text
    }
    if not fresh:
        yield Refusal(kind, Reason.NO_WRITER, "no test was written for it; a model would have to")
        return
    if not any(path.endswith(".py") for path in changed):
        yield Refusal(kind, Reason.LANGUAGE, "nothing in Python was changed")
        return
    if lost := line.lost_before(run.number) & {*tests, *changed}:
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
    yield Candidate(
        type=kind,
        instruction=line.local(instruction),
        before={path: text.encode() for path, text in before.items() if path not in fresh},
        after={
            **{path: text.encode() for path, text in changed.items()},
            **{path: None for path in start if path not in end and not is_test_file(path)},
        },
        hidden={path: tests[path].encode() for path in tests if path in fresh},
        check=Check(CheckKind.PYTHON_TESTS, line.local(run.call.command or "")),
        provenance=Provenance(
            source=line.session.source,
            format=line.session.format,
            session=line.session.id,
            licence=licence,
            first_turn=asked.turn,
            last_turn=run.turn,
        ),
        later=said_after(line, request),
    )


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
