"""What the programs that agents call do, a file for each field of work.

A program without an entry may read whatever path it is given; one that the session wrote is read
and analysed instead of being looked up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands import (
    archives,
    build,
    computed,
    files,
    filters,
    git,
    interpreters,
    machine,
    remote,
    search,
    text,
    wrappers,
)
from harness_adapters.guard.effects.shell.commands.table import COMMANDS, canonical, generic

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_MODULES = (
    *(archives, build, computed, files, filters, git, interpreters, machine, remote, search, text),
    wrappers,
)


def run_command(shell: Shell, argv: list[str], stdin: str) -> str:
    """Effects of one command with its expanded words; returns its output."""
    world = shell.world
    world.step()
    name = argv[0]
    if not known(name):
        world.emit(Kind.UNRESOLVED, "code")
        generic(shell, argv[1:], stdin)
        return ANY
    if name in shell.functions:
        return shell.call_function(name, argv[1:], stdin)
    shell.stdin = stdin
    shell.last_word = argv[-1]
    handler = COMMANDS.get(canonical(name))
    for word in argv[1:]:
        if word.startswith("--files0-from="):
            path = word.partition("=")[2]
            for listed in (stdin if path == "-" else world.read(path)).split("\0"):
                world.read(listed)
    if "/" in name or name.startswith("~"):
        path = world.path(name)
        if handler is None or world.content(path) is not None or world.written(path):
            return wrappers.run_path(shell, path, argv[1:], stdin)
        if not path.startswith(("/bin/", "/usr/", "/sbin/")):
            world.emit(Kind.EXECUTE, path)
    else:
        shim = world.scope.home + "/bin/" + name
        if world.written(shim):
            return wrappers.run_path(shell, shim, argv[1:], stdin)
    return (handler or generic)(shell, argv[1:], stdin)
