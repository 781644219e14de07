"""The normal form: what every trace reader makes of a log, whatever agent wrote it.

    Session
    |-- turns: Turn              one answer of the model
    |   |-- before: Said         what was said to the agent since the turn before
    |   `-- calls: ToolCall      what the model asked for
    |       |-- result: Result   what came back, None when the log holds no answer
    |       `-- before, after: FileState     where the log holds a file's content
    |-- after: Said              said after the last turn
    `-- orphans: Result          results of calls that the log doesn't hold

Everything is text of others: data, never instructions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Speaker(StrEnum):
    """Who said something to the agent."""

    USER = "user"
    """A person, or the one prompt of a headless run."""
    HARNESS = "harness"
    """Text that the harness put in by itself: system prompts, reminders, hooks, command output."""
    SUMMARY = "summary"
    """What a compaction left of earlier turns."""


class ToolKind(StrEnum):
    """What a tool does, as far as replay and miners must know."""

    SHELL = "shell"
    READ = "read"
    """Shows a file."""
    EDIT = "edit"
    """Writes, edits, patches or deletes files."""
    SEARCH = "search"
    AGENT = "agent"
    """Starts another agent."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Said:
    """A message to the agent."""

    speaker: Speaker
    text: str
    images: int = 0
    time: float | None = None
    """Unix seconds."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at one moment, as the log itself states it."""

    path: str
    """As the log writes it: absolute or relative to the session's `cwd`."""
    text: str | None
    """Whole content; None when the file does not exist."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool answered."""

    text: str
    call_id: str = ""
    exit_code: int | None = None
    """Of a shell command; None when the log doesn't tell."""
    failed: bool = False
    """The harness marked it as an error."""
    running: bool = False
    """The command had not ended when this was written."""
    interrupted: bool = False
    """Ended by a person or a time limit."""
    truncated: bool = False
    """The harness cut the text."""
    images: int = 0
    time: float | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    id: str
    name: str
    """As the agent's own tool is called."""
    kind: ToolKind
    arguments: Mapping[str, Any]
    """Parsed; `{"input": text}` for tools that take plain text or when the text is no object."""
    result: Result | None = None
    before: tuple[FileState, ...] = ()
    """Whole files just before this call, where the log holds them."""
    after: tuple[FileState, ...] = ()
    """Whole files just after it, where the log holds them."""
    diffs: Mapping[str, str] = field(default_factory=dict[str, str])
    """Unified diff of each path that the log says this call changed."""
    command: str | None = None
    """The command line of a shell call."""
    cwd: str | None = None
    """Where it ran, when the log says so for this call."""
    malformed: bool = False
    """The arguments could not be parsed."""
    by_user: bool = False
    """A person ran it in the agent's prompt; the model didn't ask."""
    time: float | None = None

    @property
    def exit_code(self) -> int | None:
        """The result's exit code; None when unknown or when there is no result."""
        return self.result.exit_code if self.result else None


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of the model and the calls in it."""

    index: int
    """Position in the session, from 0."""
    before: tuple[Said, ...]
    text: str
    reasoning: str
    calls: tuple[ToolCall, ...]
    model: str = ""
    agent: str = ""
    """Empty for the session's own agent, else the id of the subagent that took this turn."""
    branch: bool = False
    """On a branch that the session's last message does not descend from (edited or abandoned)."""
    time: float | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One recorded session."""

    id: str
    format: str
    source: str
    """The file that it was read from."""
    turns: tuple[Turn, ...]
    after: tuple[Said, ...] = ()
    orphans: tuple[Result, ...] = ()
    agent: str = ""
    """The harness that wrote it, where the log says: `claude_code`, `codex`, `pi`, ..."""
    agent_version: str = ""
    model: str = ""
    cwd: str = ""
    git_commit: str = ""
    git_branch: str = ""
    repository: str = ""
    parent: str = ""
    """The session that this one was forked from or that started it as a subagent."""
    started: float | None = None
    files: tuple[FileState, ...] = ()
    """Whole files that the log gives for the start or the end without tying them to a call."""
    notes: Mapping[str, int] = field(default_factory=dict[str, int])
    """What the reader met and how often: `compactions`, `duplicates`, `images`, `branches`, ..."""
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Small values beside the conversation that a later step may need: a reward, an instance id."""

    def calls(self) -> Iterator[ToolCall]:
        """All calls in order, subagents' and abandoned branches' included."""
        for turn in self.turns:
            yield from turn.calls

    def path(self) -> tuple[Turn, ...]:
        """The main agent's turns that the session's end descends from."""
        return tuple(turn for turn in self.turns if not turn.agent and not turn.branch)

    def requests(self) -> Iterator[tuple[int, Said]]:
        """What people asked, each with the index of the turn that answered it."""
        for turn in self.turns:
            for said in turn.before:
                if said.speaker is Speaker.USER:
                    yield turn.index, said
        for said in self.after:
            if said.speaker is Speaker.USER:
                yield len(self.turns), said
