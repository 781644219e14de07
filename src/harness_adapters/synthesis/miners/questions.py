"""QA: a value that a command computed from data whose content the log gives.

By rule alone where it was the session's answer to what a person asked; else a model must write the
question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from harness_adapters.synthesis.candidate import (
    ANSWER_FILE,
    Candidate,
    Check,
    CheckKind,
    Provenance,
    TaskType,
)
from harness_adapters.synthesis.miners import Draft, Found, Lack, Refusal
from harness_adapters.synthesis.miners.checks import output_of
from harness_adapters.synthesis.miners.projects import said_after
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.session import ToolKind

_DATA = {".csv", ".tsv", ".json", ".jsonl", ".log", ".txt", ".xml", ".ini", ".yaml", ".yml"}
_VALUE = re.compile(r"-?\d+(?:\.\d+)?|[\w.:-]{3,40}")
_NAME = re.compile(r"[\w./-]+")
_TEXT_TOOLS = re.compile(
    r"(?:cd\s+[\w./-]+\s*&&\s*)?(?:wc|grep|egrep|awk|jq|cut|sort|cat|head|tail)\b[^;&<>`$\n]*"
)
"""One pipeline that only reads, perhaps after a change of directory."""
_LEADING = re.compile(r"\s*(-?\d+)(?=[\s:]|$)")
_PROGRAM = re.compile(r"(?:^|&&|\|)\s*(wc|grep|egrep|awk|jq|cut|sort|cat|head|tail)\b")
ASK = f"\n\nWrite the answer, and nothing else, to {ANSWER_FILE}."


def questions(line: Timeline, licence: str) -> Iterable[Found]:
    """At most one question for each request: the last command whose output is the answer."""
    for number, request in enumerate(line.requests):
        if "?" not in request.text:
            continue
        for step in reversed(line.span(number)):
            found = _question(line, step, licence)
            if found is not None:
                yield found
                break


def facts(line: Timeline, licence: str) -> Iterable[Found]:
    """Values that nobody asked for: a pipeline of text tools over known files printed them."""
    seen: set[str] = set()
    for step in line.steps:
        call = step.call
        command = line.local(call.command or "").strip()
        if step.request < 0 or command in seen or not _TEXT_TOOLS.fullmatch(command):
            continue
        value = _leading_value(output_of(step))
        if not value or call.result is None or call.result.exit_code not in (0, None):
            continue
        data, lost = _data(line, step, command, any_file=True)
        if lost or not data:
            continue
        seen.add(command)
        cut = f"{command} | head -n 1 | grep -oE '^ *-?[0-9]+' | tr -d ' '"
        candidate = _candidate(line, step, "", cut, value, data, licence)
        yield Draft(candidate, Lack.QUESTION)


def _leading_value(output: str) -> str:
    """The number that one line of output begins with: a count, a sum, a line's number."""
    lines = output.strip().splitlines()
    found = _LEADING.match(lines[0]) if len(lines) == 1 else None
    return found[1] if found else ""


def _data(
    line: Timeline, step: Step, command: str, *, any_file: bool = False
) -> tuple[list[str], set[str]]:
    """The known files that a command names, and those of them that may have changed."""
    files = line.files_before(step.number)
    named = {PurePosixPath(word).as_posix() for word in _NAME.findall(command)}
    data = sorted(
        path
        for path in files
        if path in named and (any_file or PurePosixPath(path).suffix.lower() in _DATA)
    )
    return data, line.lost_before(step.number) & (named if any_file else set(data))


def _question(line: Timeline, step: Step, licence: str) -> Found | None:
    call = step.call
    if call.kind is not ToolKind.SHELL or not call.command or call.result is None:
        return None
    value = output_of(step).strip()
    if call.result.exit_code not in (0, None) or not _VALUE.fullmatch(value):
        return None
    if not re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", line.ends[step.request]):
        return None
    command = line.local(call.command)
    data, lost = _data(line, step, command)
    if not data:
        named = (PurePosixPath(word).as_posix() for word in _NAME.findall(command))
        wanted = next((each for each in named if PurePosixPath(each).suffix.lower() in _DATA), "")
        detail = f"{wanted or 'the data'}: its content isn't in the log"
        return Refusal(TaskType.QA, Reason.STATE_UNKNOWN, detail) if wanted else None
    if lost:
        return Refusal(TaskType.QA, Reason.STATE_UNKNOWN, f"{sorted(lost)[0]}: may have changed")
    asked = line.local(line.requests[step.request].text.strip())
    return _candidate(line, step, asked + ASK, command, value, data, licence)


def _candidate(
    line: Timeline,
    step: Step,
    instruction: str,
    command: str,
    value: str,
    data: list[str],
    licence: str,
) -> Candidate:
    files = line.files_before(step.number)
    return Candidate(
        type=TaskType.QA,
        instruction=instruction,
        before={path: files[path].encode() for path in data},
        after={},
        check=Check(CheckKind.ANSWER, command, value),
        oracle_command=command,
        data=tuple(data),
        needs=tuple(dict.fromkeys(["python3", *_PROGRAM.findall(command)])),
        provenance=Provenance(
            source=line.session.source,
            format=line.session.format,
            session=line.session.id,
            licence=licence,
            first_turn=line.requests[step.request].turn,
            last_turn=step.turn,
        ),
        later=said_after(line, step.request),
    )
