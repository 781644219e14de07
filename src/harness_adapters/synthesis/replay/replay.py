"""Walking a session's calls over a virtual file system."""

from __future__ import annotations

import posixpath
import re
from collections import Counter

from harness_adapters.synthesis.replay.content import (
    ABSENT,
    UNKNOWN,
    Certainty,
    Content,
    doubted,
)
from harness_adapters.synthesis.replay.diffs import (
    apply_hunks,
    new_lines,
    parse_diff,
    whole_new_file,
)
from harness_adapters.synthesis.replay.edits import replace
from harness_adapters.synthesis.replay.fidelity import Fidelity
from harness_adapters.synthesis.replay.operations import (
    Delete,
    Diff,
    Insert,
    Operation,
    Patch,
    Replace,
    Write,
    operations,
)
from harness_adapters.synthesis.replay.patches import FilePatch, apply_chunks
from harness_adapters.synthesis.replay.reads import shown_by, shown_by_command
from harness_adapters.synthesis.replay.shell import scripts_shown, shell_change
from harness_adapters.synthesis.traces.session import Session, ToolCall, ToolKind

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")


class Replay:
    """The files of a session at each call of its main path, subagents' calls included.

    Paths are absolute and POSIX; those that a log writes relative are joined to the directory of
    the call. A file that was first seen in the middle, and that nothing had touched before, was
    there from the start with the same content; so was one of which only lines had been seen.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.root = _slashes(session.cwd) if session.cwd else "/"
        self.calls: list[ToolCall] = [
            call for turn in session.turns if not turn.branch for call in turn.calls
        ]
        self.files: dict[str, Content] = {}
        """The files after the calls walked so far."""
        self.fidelity = Fidelity()
        """How what the log says of whole files compares with what was replayed until then."""
        self.operations: Counter[str] = Counter()
        """How many operations were `applied`, `tolerant`, or `lost`."""
        self._initial: dict[str, Content] = {}
        self._events: list[tuple[int, str, Content]] = []
        self._glimpsed: set[str] = set()
        """Files of which only lines were seen, and that nothing touched."""
        self._index = 0
        self._doubted_at = -1
        for call in self.calls:
            self._follow(call)
            self._index += 1

    def at(self, index: int) -> dict[str, Content]:
        """Files just before call `index`; `len(calls)` gives the end. Absent files are left out."""
        files = dict(self._initial)
        for moment, path, content in self._events:
            if moment >= index:
                break
            files[path] = content
        return {path: content for path, content in files.items() if content.exists}

    def changed(self, first: int, last: int) -> set[str]:
        """Paths whose content calls `first` to `last`, both included, changed or may have."""
        before, after = self.at(first), self.at(last + 1)
        return {
            path
            for moment, path, content in self._events
            if first <= moment <= last and content.certainty is not Certainty.INFERRED
        } | {path for path in after if before.get(path, ABSENT).text != after[path].text}

    def relative(self, path: str) -> str | None:
        """A path below the session's directory; None for one outside."""
        root = self.root.rstrip("/") + "/"
        return path[len(root) :] if path.startswith(root) else None

    def resolve(self, path: str, cwd: str | None = None) -> str:
        """A path as the log writes it, absolute."""
        path = _slashes(path.removeprefix("file://"))
        if _DRIVE.match(path):
            return path
        return posixpath.normpath(posixpath.join(_slashes(cwd or self.root), path))

    def _put(self, path: str, content: Content) -> None:
        if self.files.get(path) != content:
            self._glimpsed.discard(path)
            self.files[path] = content
            self._events.append((self._index, path, content))

    def _see(self, path: str, text: str | None, certainty: Certainty = Certainty.EXACT) -> None:
        """The log shows a file as it is now."""
        current = self.files.get(path)
        if current is None or self._only_glimpsed(path, text):
            first = Content(text, certainty)
            if self._doubted_at >= 0:
                first = doubted(first)
            self._initial[path] = first
            self.files[path] = Content(text, certainty)
            self._events = [event for event in self._events if event[1] != path]
            self._glimpsed.discard(path)
            return
        if current.known and text is not None:
            self.fidelity.add(path, current, text)
        if current.text == text and current.certainty in (certainty, Certainty.EXACT):
            return
        content = Content(text, certainty)
        self.files[path] = content
        self._events.append((self._index - 1, path, content))

    def _only_glimpsed(self, path: str, text: str | None) -> bool:
        """Whether nothing but lines of a file was seen until now, and they are all in this text."""
        if path not in self._glimpsed or text is None:
            return False
        lines = text.split("\n")
        return all(
            0 < number <= len(lines) and lines[number - 1].removesuffix("\r") == line
            for number, line in self.files[path].lines.items()
        )

    def _follow(self, call: ToolCall) -> None:
        for state in call.before:
            self._see(self.resolve(state.path, call.cwd), state.text)
        if call.kind is ToolKind.SHELL and call.command is not None:
            self._shell(call, call.command)
            return
        result = call.result
        if result is None or result.failed or result.running:
            return
        if call.kind is ToolKind.READ:
            self._read(call)
        elif call.kind is ToolKind.EDIT:
            self._edit(call)

    def _read(self, call: ToolCall) -> None:
        if call.after:
            for state in call.after:
                self._see_shown(self.resolve(state.path, call.cwd), state.text or "", final=False)
            return
        path = _path_of(call)
        shown = shown_by(call)
        if path is None or shown is None:
            return
        place = self.resolve(path, call.cwd)
        if shown.text is not None:
            self._see_shown(place, shown.text, final=shown.final)
        elif shown.lines:
            self._see_lines(place, shown.lines)

    def _see_shown(self, path: str, text: str, *, final: bool) -> None:
        """A read shows the whole file; without `final` its last line end may have been dropped."""
        if text.endswith("\n") or not text:
            final = True
        current = self.files.get(path)
        if not final and current is not None and current.text == text + "\n":
            text, final = text + "\n", True
        if not final and not (current is not None and current.text == text):
            self._see(path, text + "\n", Certainty.INFERRED)
        else:
            self._see(path, text)

    def _see_lines(self, path: str, lines: dict[int, str]) -> None:
        current = self.files.get(path)
        if current is None:
            partial = Content(None, Certainty.PARTIAL, lines)
            self._initial[path] = partial
            self.files[path] = partial
            self._glimpsed.add(path)
        elif not current.known and current.certainty is Certainty.PARTIAL:
            merged = {**current.lines, **lines}
            self.files[path] = Content(None, Certainty.PARTIAL, merged)
            self._events.append((self._index - 1, path, self.files[path]))

    def _edit(self, call: ToolCall) -> None:
        after = {self.resolve(state.path, call.cwd): state.text for state in call.after}
        diffs = {self.resolve(path, call.cwd): diff for path, diff in call.diffs.items() if path}
        planned = operations(call)
        for operation in planned:
            self._apply(operation, call, after, diffs)
        for path, text in after.items():
            self._put(path, Content(text))
        touched = {self.resolve(_target(each), call.cwd) for each in planned}
        for path, diff in diffs.items():
            if path not in touched and path not in after:
                self._by_diff(path, diff)

    def _apply(
        self,
        operation: Operation,
        call: ToolCall,
        after: dict[str, str | None],
        diffs: dict[str, str],
    ) -> None:
        path = self.resolve(_target(operation), call.cwd)
        current = self.files.get(path)
        if isinstance(operation, Write):
            self._count("applied")
            if current is None:
                self._initial[path] = ABSENT if _creates(call) else UNKNOWN
            self._put(path, Content(operation.text))
            return
        if isinstance(operation, Delete):
            self._delete(path)
            return
        if isinstance(operation, Patch):
            self._patch(path, operation.patch, call, diffs)
            return
        if path in after:
            self._count("applied")
            return
        text = current.text if current else None
        edited: tuple[str, bool] | None = None
        if text is not None and isinstance(operation, Replace):
            found = replace(text, operation.old, operation.new, everywhere=operation.everywhere)
            edited = (found.text, found.tolerant) if found else None
        elif text is not None and isinstance(operation, Insert):
            edited = _inserted(text, operation), False
        elif text is not None and isinstance(operation, Diff):
            applied = apply_hunks(text, operation.diff.hunks)
            edited = (applied, False) if applied is not None else None
        self._result(path, current, edited, diffs.get(path))

    def _result(
        self, path: str, current: Content | None, edited: tuple[str, bool] | None, diff: str | None
    ) -> None:
        """Put what an edit made of a file; what it can't tell, a diff beside it may."""
        if edited is None:
            if diff is not None and self._by_diff(path, diff):
                return
            self._count("lost")
            self._lose(path)
            return
        text, tolerant = edited
        self._count("tolerant" if tolerant else "applied")
        sure = current is not None and current.certainty is Certainty.EXACT and not tolerant
        self._put(path, Content(text, Certainty.EXACT if sure else Certainty.INFERRED))

    def _patch(self, path: str, patch: FilePatch, call: ToolCall, diffs: dict[str, str]) -> None:
        current = self.files.get(path)
        if patch.verb == "Add":
            self._count("applied")
            if current is None:
                self._initial[path] = ABSENT
            text = "\n".join(patch.added) + "\n" if patch.added else ""
            self._put(path, Content(text))
        elif patch.verb == "Delete":
            self._delete(path)
        else:
            known = current.text if current else None
            edited = apply_chunks(known, patch.chunks) if known is not None else None
            self._result(path, current, edited, diffs.get(path))
            if patch.move_to:
                moved = self.files.get(path, UNKNOWN)
                self._put(self.resolve(patch.move_to, call.cwd), moved)
                self._put(path, ABSENT)

    def _by_diff(self, path: str, diff: str) -> bool:
        """Apply a diff that the log gives; without the text before, keep the lines it shows."""
        files = parse_diff(diff)
        hunks = [hunk for each in files for hunk in each.hunks]
        current = self.files.get(path)
        if not hunks:
            return False
        whole = whole_new_file(hunks)
        if whole is not None:
            self._count("applied")
            self._put(path, Content(whole))
            return True
        if current is not None and current.text is not None:
            applied = apply_hunks(current.text, hunks)
            if applied is not None:
                self._count("applied")
                self._put(path, Content(applied, current.certainty))
                return True
        self._count("lost")
        if current is None:
            before = {n: line for h in hunks for n, line in enumerate(h.old, h.old_start)}
            self._initial[path] = Content(None, Certainty.PARTIAL, before)
        self._put(path, Content(None, Certainty.PARTIAL, new_lines(hunks)))
        return True

    def _delete(self, path: str) -> None:
        self._count("applied")
        if path not in self.files:
            self._initial[path] = UNKNOWN
        self._put(path, ABSENT)

    def _lose(self, path: str) -> None:
        if path not in self.files:
            self._initial[path] = UNKNOWN
        self._put(path, UNKNOWN)

    def _shell(self, call: ToolCall, command: str) -> None:
        result = call.result
        code = result.exit_code if result else None
        if result is None or result.running or result.interrupted:
            code = -1
        known = {path: each.text for path, each in self.files.items() if each.text is not None}
        cwd = self.resolve(call.cwd or self.root)
        self._shell_read(call, command, cwd)
        ran = command + scripts_shown(result.text if result else "")
        change = shell_change(command, cwd, known, code, root=self.root, ran=ran)
        if change.loses_all:
            for path in [*known, *self._glimpsed]:
                self._lose(path)
        for path in change.lost:
            if path in self.files:
                self._lose(path)
        if change.doubts:
            self._doubted_at = self._index
            for path, content in list(self.files.items()):
                self._put(path, doubted(content))
        certainty = Certainty.EXACT if change.certain else Certainty.INFERRED
        for path, text in change.written.items():
            if path not in self.files:
                self._initial[path] = ABSENT
            self._put(path, Content(text, certainty))
        for path in change.deleted:
            if path in self.files:
                self._put(path, ABSENT)

    def _shell_read(self, call: ToolCall, command: str, cwd: str) -> None:
        """`cat FILE` and `sed -n A,Bp FILE` show a file, or lines of it."""
        found = shown_by_command(command, call.result)
        if found is None:
            return
        path, shown = found
        place = self.resolve(path, cwd)
        if shown.text is not None:
            self._see_shown(place, shown.text, final=shown.final)
        else:
            self._see_lines(place, shown.lines)

    def _count(self, name: str) -> None:
        self.operations[name] += 1


def _inserted(text: str, operation: Insert) -> str:
    lines = text.split("\n")
    added = operation.text.split("\n")
    if added and added[-1] == "" and len(added) > 1:
        added.pop()
    return "\n".join([*lines[: operation.line], *added, *lines[operation.line :]])


def _target(operation: Operation) -> str:
    return operation.patch.path if isinstance(operation, Patch) else operation.path


def _creates(call: ToolCall) -> bool:
    """Whether a write says that its file was new."""
    text = call.result.text if call.result else ""
    return call.arguments.get("command") == "create" or "created" in text[:200].lower()


def _path_of(call: ToolCall) -> str | None:
    for key in ("file_path", "filePath", "path", "filename", "file", "target_file"):
        if isinstance(call.arguments.get(key), str):
            return str(call.arguments[key])
    return None


def _slashes(path: str) -> str:
    return path.replace("\\", "/") if _DRIVE.match(path) else path
