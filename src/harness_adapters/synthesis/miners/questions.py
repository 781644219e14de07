"""QA: a value that a command computed from data whose content the log gives, and that was the
session's answer to what a person asked."""

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
from harness_adapters.synthesis.miners import Found, Refusal
from harness_adapters.synthesis.miners.checks import output_of
from harness_adapters.synthesis.miners.projects import said_after
from harness_adapters.synthesis.miners.timeline import Step, Timeline
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.session import ToolKind

_DATA = {".csv", ".tsv", ".json", ".jsonl", ".log", ".txt", ".xml", ".ini", ".yaml", ".yml"}
_VALUE = re.compile(r"-?\d+(?:\.\d+)?|[\w.:-]{3,40}")
_NAME = re.compile(r"[\w./-]+")
_ASK = f"\n\nWrite the answer, and nothing else, to {ANSWER_FILE}."


def questions(line: Timeline, licence: str) -> Iterable[Found]:
    """At most one question for each request: the last command whose output is the answer."""
    for number, request in enumerate(line.requests):
        if "?" not in request.text:
            continue
        for step in reversed(line.span(number)):
            found = _question(line, number, step, licence)
            if found is not None:
                yield found
                break


def _question(line: Timeline, number: int, step: Step, licence: str) -> Found | None:
    call = step.call
    if call.kind is not ToolKind.SHELL or not call.command or call.result is None:
        return None
    value = output_of(step).strip()
    if call.result.exit_code not in (0, None) or not _VALUE.fullmatch(value):
        return None
    if not re.search(rf"(?<![\w.]){re.escape(value)}(?!\w|\.\d)", line.ends[number]):
        return None
    command = line.local(call.command)
    files = line.files_before(step.number)
    named = {PurePosixPath(word).as_posix() for word in _NAME.findall(command)}
    data = sorted(
        path for path in files if path in named and PurePosixPath(path).suffix.lower() in _DATA
    )
    if not data:
        wanted = next((each for each in named if PurePosixPath(each).suffix.lower() in _DATA), "")
        detail = f"{wanted or 'the data'}: its content isn't in the log"
        return Refusal(TaskType.QA, Reason.STATE_UNKNOWN, detail) if wanted else None
    if lost := line.lost_before(step.number) & set(data):
        return Refusal(TaskType.QA, Reason.STATE_UNKNOWN, f"{sorted(lost)[0]}: may have changed")
    request = line.requests[number]
    return Candidate(
        type=TaskType.QA,
        instruction=line.local(request.text.strip()) + _ASK,
        before={path: files[path].encode() for path in data},
        after={},
        check=Check(CheckKind.ANSWER, command, value),
        oracle_command=command,
        data=tuple(data),
        provenance=Provenance(
            source=line.session.source,
            format=line.session.format,
            session=line.session.id,
            licence=licence,
            first_turn=request.turn,
            last_turn=step.turn,
        ),
        later=said_after(line, number),
    )
