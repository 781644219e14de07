"""Archives: what goes in is read, what comes out is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ALL, ANY, degraded, from_glob
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    nested,
    options,
    places,
    read_all,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_TAR_VALUED = ("-f", "-C", "-T", "-X", "-I", "-g", "-b", "-H", "-K", "-N", "-V", "--file")
_TAR_LONG = ("--directory", "--files-from", "--exclude", "--to-command", "--use-compress-program")


@command("tar", "bsdtar", "gtar")
def tar(shell: Shell, argv: list[str], stdin: str) -> str:
    """Packs or unpacks; -C changes the directory for what follows it."""
    world = shell.world
    words = list(argv)
    if words and words[0][:1] != "-":
        letters, words = words[0], words[1:]
        spread: list[str] = []
        for letter in letters:
            spread.append("-" + letter)
            if letter in "fCTXIb" and words:
                spread.append(words.pop(0))
        words = spread + words
    flags, _ = options(words, [*_TAR_VALUED, *_TAR_LONG])
    archive = (flags.get("-f") or flags.get("--file") or ["-"])[-1]
    for flag in ("-I", "--use-compress-program", "--to-command"):
        for text in flags.get(flag, []):
            shell.run(text)
    for word in words:
        if word.startswith("--checkpoint-action=exec="):
            shell.run(word.split("=", 2)[2])
    creates = bool({"-c", "-r", "-u", "--create", "--append", "--update"} & set(flags))
    members = _members(shell, words)
    if creates:
        for directory, member in members:
            for place in world.globbed(world.path(member, directory)):
                world.emit(Kind.READ, place, recursive=True)
        for path in flags.get("-T", []) + flags.get("--files-from", []):
            for line in (stdin if path == "-" else world.read(path)).splitlines():
                world.emit(Kind.READ, world.path(line), recursive=True)
        if archive != "-":
            world.write(archive, None)
        return ANY
    if archive != "-":
        read_all(shell, [archive])
    if {"-x", "--extract", "--get"} & set(flags) and not {"-O", "--to-stdout"} & set(flags):
        targets = [d for d, _ in members] or [world.cwd]
        for value in flags.get("-C", []) + flags.get("--directory", []):
            targets.append(world.path(value))
        for target in dict.fromkeys(targets[-1:]):
            if not members:
                world.emit(Kind.WRITE, f"{target}/{ANY}")
        for directory, member in members:
            world.emit(Kind.WRITE, world.path(member, directory), recursive=True)
    return ANY


def _members(shell: Shell, words: list[str]) -> list[tuple[str, str]]:
    """Operands with the directory that holds for each."""
    directory = shell.world.cwd
    found: list[tuple[str, str]] = []
    valued = {*_TAR_VALUED, *_TAR_LONG}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        value = words[index] if index < len(words) else ""
        if word.startswith("--directory="):
            directory = shell.world.path(word.split("=", 1)[1], directory)
        elif word in ("-C", "--directory"):
            directory = shell.world.path(value, directory)
            index += 1
        elif word.startswith("-C") and len(word) > 2:
            directory = shell.world.path(word[2:], directory)
        elif word in valued:
            index += 1
        elif word[:1] == "-" and len(word) > 1:
            # A cluster whose last letter takes a value: `-czf NAME`.
            if not word.startswith("--") and "-" + word[-1] in valued:
                if word[-1] == "C":
                    directory = shell.world.path(value, directory)
                index += 1
        elif word != "-":
            found.append((directory, word))
    return found


@command("zip", "7z", "7za", "7zz", "rar", "ar", "cpio", "pax", "jar")
def pack(shell: Shell, argv: list[str], stdin: str) -> str:
    """Packs its operands into the first one, or unpacks it."""
    _, operands = options(argv)
    if operands and operands[0] in ("a", "x", "e", "l", "u", "d", "r", "rc", "t", "cf", "xf"):
        operands = operands[1:]
    for operand in operands[:1]:
        shell.world.write(operand, None)
    for operand in operands[1:]:
        for place in places(shell, operand):
            shell.world.emit(Kind.READ, place, recursive=True)
    for line in stdin.splitlines():
        shell.world.emit(Kind.READ, shell.world.path(line))
    return ANY


@command("unzip", "unrar", "gunzip", "bunzip2", "unxz", "uncompress", "unzstd", "funzip")
def unpack(shell: Shell, argv: list[str], stdin: str) -> str:
    """Unpacks its first operand here, or below -d."""
    flags, operands = options(argv, ["-d", "-x", "-P"])
    read_all(shell, operands[:1])
    if {"-l", "-p", "-c", "-t", "-v", "-Z"} & set(flags):
        return degraded(stdin) if stdin else ANY
    if not operands:
        return degraded(stdin)
    target = (flags.get("-d") or ["."])[-1]
    # Its `*` crosses slashes.
    members = [from_glob(o).replace(ALL, ANY) for o in operands[1:]] or [ANY]
    for member in members:
        shell.world.emit(Kind.WRITE, shell.world.path(target) + "/" + member)
    return ANY


@command("gzip", "bzip2", "xz", "zstd", "lz4", "brotli", "compress", "pigz", "lzma")
def compress(shell: Shell, argv: list[str], stdin: str) -> str:
    """Compresses its operands in place, or its input."""
    flags, operands = options(argv, ["-o", "-S", "-T"])
    text = read_all(shell, operands) if operands else stdin
    if operands and not {"-c", "--stdout", "-k", "--keep", "-t", "-l"} & set(flags):
        for operand in operands:
            for place in places(shell, operand):
                shell.world.delete(place)
    return degraded(text)


@command("tarfile", "zipfile")
def python_archive(shell: Shell, argv: list[str], stdin: str) -> str:
    """`python -m tarfile` and `python -m zipfile`."""
    words = [a for a in argv if a[:1] != "-"]
    if {"-c", "--create"} & set(argv):
        for word in words[1:]:
            shell.world.emit(Kind.READ, shell.world.path(word), recursive=True)
        return nested(shell, ["touch", *words[:1]], "")
    read_all(shell, words[:1])
    if {"-e", "--extract"} & set(argv):
        target = shell.world.path(words[1]) if len(words) > 1 else shell.world.cwd
        shell.world.emit(Kind.WRITE, f"{target}/{ANY}")
    return ANY
