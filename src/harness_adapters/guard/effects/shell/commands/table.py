"""The table of commands, and what any command without an entry is taken to do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from harness_adapters.guard.effects.holes import ANY, OPAQUE, as_written, degraded, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.limits import MAX_TEXT

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

Command: TypeAlias = "Callable[[Shell, list[str], str], str]"
"""Of the shell, the arguments without the name, and the input; returns the output."""

COMMANDS: dict[str, Command] = {}
_URL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//([^/?#]*)", re.IGNORECASE)
_QUOTED_PATH = re.compile(r"""["'`]((?:/|~/|\.\./)[^"'`\s]+)["'`]""")
_VERSIONED = re.compile(r"(python|pip|pypy|ruby|perl|lua|php|node)[\d.]*[wm]?")


def command(*names: str) -> Callable[[Command], Command]:
    """Enter a function under these names."""

    def enter(function: Command) -> Command:
        for name in names:
            COMMANDS[name] = function
        return function

    return enter


def canonical(name: str) -> str:
    """Name of a program without its directory and version."""
    base = name.rsplit("/", 1)[-1]
    match = _VERSIONED.fullmatch(base)
    return match[1] if match else base


def options(
    argv: Sequence[str], valued: Iterable[str] = (), *, stop: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Split arguments into options (name without value -> values) and operands.

    `valued` are options that take the next argument, `-x` also an attached one. With `stop`, the
    first operand ends the options, as for programs that run another one.
    """
    takes = set(valued)
    found: dict[str, list[str]] = {}
    operands: list[str] = []
    index = 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word == "--":
            operands += argv[index:]
            break
        if len(word) < 2 or word[0] != "-":
            operands.append(word)
            if stop:
                operands += argv[index:]
                break
            continue
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if not equals and name in takes and index < len(argv):
                value = argv[index]
                index += 1
            found.setdefault(name, []).append(value)
            continue
        if word in takes:
            found.setdefault(word, []).append(argv[index] if index < len(argv) else "")
            index += 1
            continue
        for place, letter in enumerate(word[1:], 2):
            name = "-" + letter
            if name in takes:
                value = word[place:]
                if not value and index < len(argv):
                    value = argv[index]
                    index += 1
                found.setdefault(name, []).append(value)
                break
            found.setdefault(name, []).append("")
        found.setdefault(word, []).append("")
    return found, operands


def places(shell: Shell, operand: str) -> list[str]:
    """Resolved paths of an operand: several where a glob meets a tree."""
    return shell.world.globbed(shell.world.path(operand))


def read_all(shell: Shell, operands: Iterable[str], *, recursive: bool = False) -> str:
    """Effects of reading all operands; returns their joined text."""
    texts: list[str] = []
    size = 0
    for operand in operands:
        size += len(texts[-1]) if texts else 0
        if size > MAX_TEXT:
            texts = [OPAQUE]
        if operand == "-":
            texts.append(shell.stdin)
            continue
        texts += [shell.world.read(place, recursive=recursive) for place in places(shell, operand)]
    return "".join(texts)


def embedded_path(word: str) -> str | None:
    """A path inside an option: `--file=PATH`, `-f/PATH`, `if=PATH`, `@PATH`."""
    if "=" in word:
        value = word.split("=", 1)[1]
        return value or None
    if word.startswith("@"):
        return word[1:]
    slash = min((word.find(c) for c in "/~" if c in word), default=-1)
    return word[slash:] if word.startswith("-") and slash > 0 else None


def network(shell: Shell, address: str) -> None:
    """Effect of reaching the host of a URL or of `host:port`."""
    shell.world.emit(Kind.NETWORK, host_of(address))


def host_of(address: str) -> str:
    """Host of a URL, of `user@host:path` or of `host:port`, in lower case."""
    address = as_written(address)
    match = _URL.match(address)
    rest = match[1] if match else address.split("/", 1)[0]
    rest = rest.rsplit("@", 1)[-1]
    if rest.startswith("["):
        return rest[1:].split("]")[0].lower()
    return rest.split(":", 1)[0].lower() or ANY


def generic(shell: Shell, argv: list[str], stdin: str) -> str:
    """A program that isn't known: it may read whatever it is given, and reach any URL."""
    for word in argv:
        if "://" in word:
            url = word.split("=", 1)[1] if word.startswith("-") and "=" in word else word
            network(shell, url)
            continue
        path = embedded_path(word) if word[:1] in "-@" or "=" in word else word
        if path and len(path) < 4096 and "\n" not in path:
            for place in places(shell, path):
                shell.world.emit(Kind.READ, place)
        if len(word) < 4096 and known(word):
            # A text in a language of its own: the paths that it quotes.
            for quoted in _QUOTED_PATH.findall(word):
                shell.world.emit(Kind.READ, shell.world.path(quoted))
    return ANY


def printed(text: str) -> str:
    """Output of a filter that isn't modelled."""
    return degraded(text)


def nested(shell: Shell, argv: list[str], stdin: str) -> str:
    """Run a command that another one starts."""
    from harness_adapters.guard.effects.shell.commands import run_command

    return run_command(shell, argv, stdin) if argv else ""


__all__ = [
    "COMMANDS",
    "Command",
    "canonical",
    "command",
    "embedded_path",
    "generic",
    "host_of",
    "known",
    "nested",
    "network",
    "options",
    "places",
    "printed",
    "read_all",
]
