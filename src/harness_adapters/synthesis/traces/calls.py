"""A tool call from what most logs write of one."""

from __future__ import annotations

from typing import Any

from harness_adapters.synthesis.traces import tools, values
from harness_adapters.synthesis.traces.session import ToolCall, ToolKind


def make_call(
    identity: str,
    name: str,
    arguments: Any,
    *,
    time: float | None = None,
    cwd: str | None = None,
    by_user: bool = False,
) -> ToolCall:
    """A call as most logs write it: an id, a tool's name, and arguments as object or JSON text."""
    parsed, malformed = values.arguments(arguments)
    kind = tools.kind_of(name, parsed)
    line = tools.command_line(parsed)
    if malformed and kind is ToolKind.EDIT and isinstance(arguments, str):
        malformed = False  # plain text is what such a tool takes: a patch
    shell = kind is ToolKind.SHELL or (kind is ToolKind.EDIT and bool(line) and _shell_name(name))
    return ToolCall(
        id=identity,
        name=name,
        kind=kind,
        arguments=parsed,
        command=line if shell else None,
        cwd=cwd or tools.working_directory(parsed),
        malformed=malformed,
        by_user=by_user,
        time=time,
    )


def _shell_name(name: str) -> bool:
    return tools.kind_of(name) is ToolKind.SHELL
