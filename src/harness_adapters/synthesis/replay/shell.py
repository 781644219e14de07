"""What a command line does to files, worked out on paper by the guard's analysis of the shell.

Written text counts as exact only where the command line has one way to go and ended well; else the
paths that it may have written are lost until they are seen again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tree_sitter import Node

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.parsing import PARSER
from harness_adapters.guard.effects.shell.run import run_shell
from harness_adapters.guard.effects.world import OutOfBudget, Scope, Session, World

_BRANCHES = {
    "if_statement",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "case_statement",
    "function_definition",
    "||",
    "&",
}
_QUIET = re.compile(
    r"\b(?:pytest|unittest|go\s+(?:test|build|vet|run)|cargo\s+(?:test|check|build|clippy|run)"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:test|build|typecheck|type-check)\b"
    r"|bun\s+test|jest|vitest|mocha|tsc|tsgo|eslint|biome\s+(?:check|lint)|ruff\s+check|mypy|pyright"
    r"|node\s+--test|make\s+(?:test|check|lint|build)|dotnet\s+test|mvn|gradle|rspec|phpunit)\b"
)
_FORMATS = re.compile(
    r"--(?:fix|write|apply)\b|\bgofmt\s+-\w*w|\bgo\s+(?:fmt|generate)\b|\bcargo\s+fmt\b"
    r"|\b(?:black|isort|autopep8|yapf|prettier)\b|\bruff\s+format\b|\bgoimports\b"
    r"|\b(?:format|lint:fix|fmt|pre-commit)\b"
)
_REWRITES = re.compile(
    r"\bgit\s+(?:checkout|switch|restore|reset|stash|pull|merge|rebase|revert|cherry-pick|apply|am"
    r"|clean)\b|\bpatch\s+-|\bperl\s+-\w*i"
)
_READ_ONLY_GIT = re.compile(r"\bgit\s+(?:checkout\s+-b|switch\s+-c|stash\s+list)\b")
MAX_COMMAND = 100_000
MAX_STEPS = 2_000
"""Statements of a command and of the programs that it starts; beyond them all files are in doubt.

What a long program writes isn't known from the log anyway, and a log holds many of them.
"""


@dataclass(slots=True)
class ShellChange:
    """What a command does to files: absolute paths."""

    written: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    certain: bool = True
    """False: `written` and `deleted` hold only if every part of the line was reached."""
    doubts: bool = False
    """A program ran that may have changed any file."""
    loses_all: bool = False
    """git or a patch changed files that the line doesn't name."""


def shell_change(
    command: str,
    cwd: str,
    files: Mapping[str, str],
    exit_code: int | None,
    *,
    root: str,
    ran: str = "",
) -> ShellChange:
    """What `command` does in `cwd`, with the text of the `files` that are known.

    `ran` is the command with what it is known to have started.
    """
    change = ShellChange()
    if _REWRITES.search(_READ_ONLY_GIT.sub("", ran or command)):
        change.loses_all = True
    formats = bool(_FORMATS.search(ran or command))
    if len(command) > MAX_COMMAND:
        change.doubts = True
        return change
    session = Session(files=dict(files))
    world = World(Scope(workdir=root, home=ANY), session, None, cwd, steps=MAX_STEPS)
    try:
        run_shell(world, command)
    except (OutOfBudget, RecursionError):
        change.doubts = True
        return change
    world.commit()
    straight, sequence = _shape(command)
    fine = straight and (exit_code == 0 or (exit_code is None and not sequence))
    change.certain = fine and exit_code == 0 and not (sequence and "&&" in command)
    for path, text in session.files.items():
        if path in files and files[path] == text:
            continue
        if fine and text is not None and known(text) and known(path):
            change.written[path] = text
        else:
            change.lost.add(path)
    for path in session.gone:
        if fine and known(path):
            change.deleted.add(path)
        else:
            change.lost.add(path)
    for effect in world.effects:
        if effect.kind in (Kind.WRITE, Kind.DELETE) and effect.recursive:
            below = effect.target.rstrip("/") + "/"
            change.lost |= {path for path in files if path.startswith(below)}
        if effect.kind in (Kind.EXECUTE, Kind.UNRESOLVED) and not effect.deferred:
            change.doubts = True
    change.doubts = formats or (change.doubts and not _QUIET.search(command))
    change.lost -= change.written.keys()
    return change


def scripts_shown(output: str) -> str:
    """The command lines that a package manager says it runs, as lines after `> `."""
    return "".join(f"\n{line[2:]}" for line in output[:20_000].split("\n") if line[:2] == "> ")


def _shape(command: str) -> tuple[bool, bool]:
    """Whether a line has one way to go, and whether it is several commands in a row."""
    root = PARSER.parse(command.encode(errors="replace")).root_node
    if root.has_error:
        return False, True
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if node.type in _BRANCHES:
            return False, True
        if node.type != "heredoc_body":
            stack += node.children
    statements = [child for child in root.named_children if child.type != "comment"]
    return True, len(statements) > 1
