"""The files of a session at each of its calls, as far as its log gives them.

A file's content is known from a write, from an edit of a known content, from a whole read, or from
the state that a log records beside a call. What was read before anything changed it was there from
the start. A shell command that may have written a file makes it unknown until it is seen again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness_adapters.synthesis.traces.session import Session, Speaker, ToolCall, ToolKind

_PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "target_file")
_CONTENT_KEYS = ("content", "file_text", "contents", "text")
_OLD_KEYS = ("old_string", "oldText", "oldString", "old_str", "old_text")
_NEW_KEYS = ("new_string", "newText", "newString", "new_str", "new_text")
_NUMBERED = re.compile(r"^\s*(\d+)(?:\t|\||: |→)(.*)$")
_WRITERS = re.compile(
    r"(?<![<>=-])>(?![&=])|\btee\b|\bsed\s+(?:-\w+\s+)*-i|\b(?:mv|cp|rm|patch|truncate|dd|install)\s"
    r"|\bgit\s+(?:apply|checkout|restore|reset|stash|pull|merge|rebase)|\b(?:black|isort|prettier)\b"
    r"|\bruff\s+(?:format|check\s+--fix)"
)
_HEREDOC = re.compile(
    r"^\s*cat\s*>\s*(?P<path>[\w./-]+)\s*<<\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\n"
    r"(?P<text>.*?)^(?P=end)\s*$",
    re.DOTALL | re.MULTILINE,
)
_CAT = re.compile(r"^\s*cat\s+(?P<path>[\w./-]+)\s*$")


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the session's own agent, with the request that it belongs to."""

    number: int
    turn: int
    request: int
    """Which request it works on, from 0; -1 before any."""
    call: ToolCall


@dataclass(frozen=True, slots=True)
class Request:
    """What a person asked."""

    text: str
    turn: int


class Timeline:
    """A session's calls in order and the files before each."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.requests: list[Request] = []
        self.steps: list[Step] = []
        self.ends: list[str] = []
        """The model's last words in answer to each request."""
        self._number()
        self.root = _root(session, [step.call for step in self.steps])
        self._initial: dict[str, str] = {}
        self._events: list[tuple[int, str, str | None]] = []
        self.unknown: dict[str, int] = {}
        """Files whose content was lost, and the step at which."""
        self._current: dict[str, str | None] = {}
        for step in self.steps:
            self._follow(step)

    def files_before(self, number: int) -> dict[str, str]:
        """Known files just before a step; `len(steps)` gives the end."""
        files = dict(self._initial)
        for at, path, text in self._events:
            if at < number:
                if text is None:
                    files.pop(path, None)
                else:
                    files[path] = text
        return files

    def lost_before(self, number: int) -> set[str]:
        """Files that a command may have changed, and that were not seen again before a step."""
        known = {path: at for at, path, _ in self._events if at < number}
        return {
            path for path, at in self.unknown.items() if at < number and known.get(path, -1) <= at
        }

    def span(self, request: int) -> list[Step]:
        """The calls that work on a request."""
        return [step for step in self.steps if step.request == request]

    def relative(self, path: str) -> str | None:
        """A path below the working directory; None for one outside."""
        pure = PurePosixPath(path)
        if pure.is_absolute():
            if not pure.is_relative_to(self.root):
                return None
            pure = pure.relative_to(self.root)
        if ".." in pure.parts or not pure.parts:
            return None
        return pure.as_posix()

    def local(self, command: str) -> str:
        """A command line with the working directory's path taken out."""
        root = str(self.root)
        if root == "/":
            return command
        return re.sub(rf"{re.escape(root)}(?:/|(?=[\s;&|'\")]|$))", "./", command)

    def _number(self) -> None:
        for turn in self.session.path():
            for said in turn.before:
                if said.speaker is Speaker.USER and said.text.strip():
                    self.requests.append(Request(said.text, turn.index))
                    self.ends.append("")
            for call in turn.calls:
                step = Step(len(self.steps), turn.index, len(self.requests) - 1, call)
                self.steps.append(step)
            if self.ends and turn.text.strip():
                self.ends[-1] = turn.text

    def _follow(self, step: Step) -> None:
        call = step.call
        for state in call.before:
            self._see(step.number, state.path, state.text)
        if call.kind is ToolKind.SHELL and call.command:
            self._shell(step, call.command)  # also one that failed: its first part may have run
        if call.result is None or call.result.failed or call.result.running:
            return
        if call.kind is ToolKind.READ and not call.after:
            self._read(step)
        if call.after:
            for state in call.after:
                if call.kind is ToolKind.READ:
                    self._see(step.number, state.path, state.text)
                else:
                    self._write(step.number, state.path, state.text)
        elif call.kind is ToolKind.EDIT:
            self._edit(step)

    def _see(self, number: int, path: str, text: str | None) -> None:
        name = self.relative(path)
        if name is None or text is None:
            return
        if name not in self._current:
            self._initial[name] = text
            self._current[name] = text
        elif self._current[name] != text:
            self._write(number - 1, path, text)

    def _write(self, number: int, path: str, text: str | None) -> None:
        name = self.relative(path)
        if name is not None:
            self._current[name] = text
            self._events.append((number, name, text))

    def _lose(self, number: int, name: str) -> None:
        self.unknown[name] = number

    def _read(self, step: Step) -> None:
        arguments, result = step.call.arguments, step.call.result
        path = _first(arguments, _PATH_KEYS)
        if path is None or result is None or result.truncated:
            return
        if any(arguments.get(key) for key in ("offset", "limit", "view_range", "start_line")):
            return
        text = whole_text(result.text)
        if text is not None:
            self._see(step.number, path, text)

    def _shell(self, step: Step, command: str) -> None:
        for found in _HEREDOC.finditer(command):
            self._write(step.number, found["path"], found["text"])
        rest = _HEREDOC.sub("", command)
        result = step.call.result
        if (found := _CAT.match(rest)) and result is not None and not result.truncated:
            self._see(step.number, found["path"], result.text)
        elif _WRITERS.search(rest):
            for name in self._current:
                if re.search(rf"(?<![\w/]){re.escape(PurePosixPath(name).name)}\b", rest):
                    self._lose(step.number, name)

    def _edit(self, step: Step) -> None:
        arguments = step.call.arguments
        path = _first(arguments, _PATH_KEYS)
        if path is None:
            return
        name = self.relative(path)
        content = _first(arguments, _CONTENT_KEYS)
        pairs = list(_replacements(arguments))
        if pairs:
            text = self._current.get(name or "")
            for old, new, everywhere in pairs:
                if text is None or old not in text:
                    if name is not None:
                        self._lose(step.number, name)
                    return
                text = text.replace(old, new) if everywhere else text.replace(old, new, 1)
            self._write(step.number, path, text)
        elif content is not None:
            self._write(step.number, path, content)
        elif name is not None:
            self._lose(step.number, name)


def _first(arguments: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), None)


def _replacements(arguments: Mapping[str, object]) -> Iterator[tuple[str, str, bool]]:
    edits = arguments.get("edits")
    for one in edits if isinstance(edits, list) else [arguments]:
        if not isinstance(one, dict | Mapping):
            continue
        old, new = _first(one, _OLD_KEYS), _first(one, _NEW_KEYS)
        if old and new is not None:
            yield old, new, bool(one.get("replace_all") or one.get("replaceAll"))


def whole_text(shown: str) -> str | None:
    """A file's text from what a read shows: plain, with line numbers, or in JSON; None if cut."""
    if shown.startswith("{"):
        try:
            found = json.loads(shown)
        except ValueError:
            return shown
        if not isinstance(found, dict) or not isinstance(found.get("content"), str):
            return shown
        if found.get("truncated"):
            return None
        shown = found["content"]
    inner = re.search(
        r"<content>\n(.*?)\n*(?:\(End of file[^\n]*\)\n)?</content>", shown, re.DOTALL
    )
    if inner:
        shown = inner[1]
    lines = shown.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    numbered = [_NUMBERED.match(line) for line in lines]
    if lines and all(numbered):
        if int(numbered[0][1]) != 1:  # type: ignore[index]
            return None
        texts = [one[2] for one in numbered if one]
        while texts and not texts[-1]:
            texts.pop()
        return "\n".join(texts) + "\n"
    return shown


def _root(session: Session, calls: list[ToolCall]) -> PurePosixPath:
    """The working directory: what the log names, else what all touched files share."""
    if session.cwd.startswith("/"):
        return PurePosixPath(session.cwd)
    paths = [
        PurePosixPath(path).parent
        for call in calls
        if call.kind in (ToolKind.EDIT, ToolKind.READ)
        and (path := _first(call.arguments, _PATH_KEYS))
        and path.startswith("/")
    ]
    if not paths:
        return PurePosixPath("/")
    shared = paths[0]
    while not all(path.is_relative_to(shared) for path in paths):
        shared = shared.parent
    return shared
