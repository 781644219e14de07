"""What an editing call asks for, whatever the agent's tool and its arguments are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness_adapters.synthesis.replay.diffs import FileDiff, parse_diff
from harness_adapters.synthesis.replay.patches import FilePatch, parse_patch
from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.session import ToolCall

_PATHS = ("file_path", "filePath", "path", "filename", "file", "target_file", "notebook_path")
_CONTENTS = ("content", "file_text", "contents", "text", "code")
_OLD = ("old_string", "oldString", "oldText", "old_str", "old_text", "search", "old")
_NEW = ("new_string", "newString", "newText", "new_str", "new_text", "replace", "new")
_ALL = ("replace_all", "replaceAll", "all", "allow_multiple")
_PATCHES = ("patch", "input", "diff", "patchText", "patch_text", "content", "command", "cmd")


@dataclass(frozen=True, slots=True)
class Write:
    """The whole file becomes this text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Replace:
    """Old text becomes new text; later replacements of one call see the earlier ones' result."""

    path: str
    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """Text is put after a line, 0 for the top."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Patch:
    """A file's part of an `apply_patch` envelope."""

    patch: FilePatch


@dataclass(frozen=True, slots=True)
class Diff:
    """A file's part of a unified diff."""

    path: str
    diff: FileDiff


@dataclass(frozen=True, slots=True)
class Delete:
    """The file goes."""

    path: str


@dataclass(frozen=True, slots=True)
class Lose:
    """The file changes in a way that isn't modelled."""

    path: str


Operation: TypeAlias = Write | Replace | Insert | Patch | Diff | Delete | Lose


def operations(call: ToolCall) -> list[Operation]:
    """What an editing call does, in order; empty when that can't be told."""
    patch = _first(call.arguments, _PATCHES)
    if patch and "*** Begin Patch" in patch:
        return [Patch(each) for each in parse_patch(patch)]
    path = _first(call.arguments, _PATHS)
    if path is None:
        return []
    return list(_of_file(call.name.lower(), path, call.arguments))


def _of_file(name: str, path: str, arguments: Mapping[str, Any]) -> Iterator[Operation]:
    command = values.text(arguments.get("command"))
    new = _first(arguments, _NEW)
    if command == "view":
        return
    if name.startswith("delete"):
        yield Delete(path)
    elif command == "insert" or name == "insert":
        line = values.integer(arguments.get("insert_line"))
        text = new if new is not None else _first(arguments, ("insert_text", "text"))
        yield Insert(path, line, text) if line is not None and text is not None else Lose(path)
    elif isinstance(arguments.get("edits"), list):
        for edit in arguments["edits"]:
            yield _replacement(path, values.mapping(edit))
    elif _first(arguments, _OLD) is not None and new is not None:
        yield _replacement(path, arguments)
    elif isinstance(arguments.get("diff"), str):
        for each in parse_diff(arguments["diff"]):
            yield Diff(path, each)
    elif command in ("undo_edit", "str_replace") or "notebook" in name:
        yield Lose(path)
    else:
        content = _first(arguments, _CONTENTS)
        yield Write(path, content) if content is not None else Lose(path)


def _replacement(path: str, edit: Mapping[str, Any]) -> Operation:
    old, new = _first(edit, _OLD), _first(edit, _NEW)
    if old is None or new is None:
        return Lose(path)
    everywhere = any(edit.get(key) is True for key in _ALL)
    return Replace(path, old, new, everywhere)


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), None)
