"""A session as miners look at it: requests, the calls that work on each, the files before each."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from harness_adapters.synthesis.housekeeping import is_housekeeping
from harness_adapters.synthesis.replay import Replay
from harness_adapters.synthesis.traces.session import Session, Speaker, ToolCall, ToolKind

_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "target_file")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the session's own agent, with the request that it works on."""

    number: int
    """Its place among the calls that replay walks."""
    turn: int
    request: int
    """From 0; -1 before any."""
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked."""

    text: str
    turn: int


class Timeline:
    """A session's calls in order and the files before each, by path below the working directory."""

    def __init__(self, session: Session) -> None:
        self.root = _root(session)
        self.session = replace(session, cwd=str(self.root))
        self.replay = Replay(self.session)
        self.requests: list[Request] = []
        self.steps: list[Step] = []
        self.ends: list[str] = []
        """The model's last words in answer to each request."""
        self._number()

    def files_before(self, number: int) -> dict[str, str]:
        """Files whose whole text is known just before a call; `len(replay.calls)`: at the end.

        What agents and tools keep for themselves is no part of a project.
        """
        return {
            name: content.text
            for path, content in self.replay.at(number).items()
            if content.text is not None
            and (name := self.replay.relative(path))
            and not is_housekeeping(name)
        }

    def lost_before(self, number: int) -> set[str]:
        """Files that are there, but known in part at most."""
        return {
            name
            for path, content in self.replay.at(number).items()
            if content.text is None and (name := self.replay.relative(path))
        }

    def end_of(self, request: int) -> int:
        """The number of the first call after a request's own; of no call at the session's end."""
        later = (step.number for step in self.steps if step.request > request)
        return next(later, len(self.replay.calls))

    def span(self, request: int) -> list[Step]:
        """The calls that work on a request."""
        return [step for step in self.steps if step.request == request]

    def local(self, command: str) -> str:
        """A text with the working directory's path taken out."""
        root = str(self.root)
        if root == "/":
            return command
        return re.sub(rf"{re.escape(root)}(?:/|(?=[\s;&|'\")]|$))", "./", command)

    def _number(self) -> None:
        number = 0
        for turn in self.session.turns:
            if turn.branch:
                continue
            if turn.agent:  # a subagent's calls change files, but answer no person
                number += len(turn.calls)
                continue
            for said in turn.before:
                if said.speaker is Speaker.USER and said.text.strip():
                    self.requests.append(Request(said.text, turn.index))
                    self.ends.append("")
            for call in turn.calls:
                self.steps.append(Step(number, turn.index, len(self.requests) - 1, call))
                number += 1
            if self.ends and turn.text.strip():
                self.ends[-1] = turn.text


def _root(session: Session) -> PurePosixPath:
    """The working directory: what the log names, else what all touched files share."""
    if session.cwd.startswith("/"):
        return PurePosixPath(session.cwd)
    paths = [
        PurePosixPath(path).parent
        for call in session.calls()
        if call.kind in (ToolKind.EDIT, ToolKind.READ)
        for key in _PATH_KEYS
        if isinstance(path := call.arguments.get(key), str) and path.startswith("/")
    ]
    if not paths:
        return PurePosixPath("/work")  # all paths are relative: any place will do
    shared = paths[0]
    while not all(path.is_relative_to(shared) for path in paths):
        shared = shared.parent
    return shared
