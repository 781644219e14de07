"""What the tools of the known agents do, by name; and the command line of a shell call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.session import ToolKind

_NAMES: dict[ToolKind, str] = {
    ToolKind.SHELL: """
        bash shell exec exec_command shell_command local_shell local_shell_call container.exec
        terminal execute_bash bash_command run_shell_command run_terminal_cmd run_command powershell
        execute_command command_execution bashexecution run sh cmd run_in_terminal
        """,
    ToolKind.READ: """
        read read_file view view_file open_file readfile notebookread cat_file view_image open
        read_many_files fileread goto scroll_up scroll_down
        """,
    ToolKind.EDIT: """
        write edit multiedit multi_edit notebookedit write_file writefile edit_file editfile
        create_file create str_replace strreplace replace insert undo_edit apply_patch applypatch
        patch delete_file search_replace file_change replace_in_file write_to_file apply_diff
        update_file insert_content edit_block file_edit filewrite fileedit ast_edit
        """,
    ToolKind.SEARCH: """
        grep glob search search_files find find_file search_dir search_file ls list list_dir
        list_files list_directory codebase_search file_search ripgrep rg grep_search ast_grep
        search_file_content
        """,
    ToolKind.AGENT: """
        task agent subagent delegate delegate_task spawn_agent browse_agent new_task workflow
        """,
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_EDITORS = {"str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor"}
_PATCH_COMMAND = re.compile(r"(?:^|[\s;&|(])(?:apply_patch|applypatch)\b")
_SHELL_PROGRAMS = {"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "powershell", "pwsh"}


def kind_of(name: str, arguments: Mapping[str, Any] | None = None) -> ToolKind:
    """What a tool does. Editors with sub-commands are judged by the one in `arguments`."""
    plain = name.rsplit("__", 1)[-1].rsplit(".", 1)[-1].strip().lower()
    known = _KINDS.get(name.strip().lower()) or _KINDS.get(plain)
    if plain in _EDITORS:
        command = values.text((arguments or {}).get("command"))
        return ToolKind.READ if command == "view" else ToolKind.EDIT
    if plain == "exec" and arguments is not None and not {"command", "cmd"} & arguments.keys():
        return ToolKind.OTHER  # codex's code mode: a program that calls other tools
    if name.startswith("mcp__") and known is ToolKind.AGENT:
        return ToolKind.OTHER
    if known is ToolKind.SHELL and arguments is not None:
        line = command_line(arguments)
        if line and is_patch_command(line):
            return ToolKind.EDIT
    return known or ToolKind.OTHER


def is_patch_command(line: str) -> bool:
    """Whether a command line hands a patch to `apply_patch`, which codex takes as an edit."""
    return "*** Begin Patch" in line and _PATCH_COMMAND.search(line) is not None


def command_line(arguments: Mapping[str, Any]) -> str | None:
    """The command line of a shell call: a text, or a list whose shell wrapper is taken off."""
    for key in ("command", "cmd", "keystrokes", "script", "code", "input"):
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
            words: list[str] = value
            wrapped = len(words) == 3 and words[0] in _SHELL_PROGRAMS
            if wrapped and words[1].startswith("-"):
                return words[2]
            return shlex.join(words)
    return None


def working_directory(arguments: Mapping[str, Any]) -> str | None:
    """Where a shell call asks to run."""
    for key in ("workdir", "cwd", "working_dir", "working_directory", "dir"):
        if isinstance(arguments.get(key), str) and arguments[key]:
            return str(arguments[key])
    return None
