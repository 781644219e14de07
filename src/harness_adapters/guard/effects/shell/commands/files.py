"""Programs that make, change, move and remove files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, OPAQUE, STAR, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    options,
    places,
    read_all,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell


def _destinations(shell: Shell, sources: list[str], target: str, *, into: bool) -> list[str]:
    """Where each source ends up: below `target`, where that is a directory."""
    world = shell.world
    path = world.path(target)
    directory = into or target.endswith(("/", "/.")) or target in (".", "..") or len(sources) > 1
    known_directory = world.tree is not None and world.tree.exists(path)
    if known_directory and world.content(path) is None:
        directory = True
    if not directory and "." not in path.rsplit("/", 1)[-1] and world.content(path) is None:
        # May be a directory or a new name: both are reported, the longer one first.
        return [f"{path}/{_last(source)}" for source in sources] + [path]
    return [f"{path}/{_last(source)}" for source in sources] if directory else [path]


def _last(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1] or STAR


def _transfer(shell: Shell, argv: list[str], *, moves: bool) -> str:
    flags, operands = options(
        argv, ["-t", "-S", "-m", "-o", "-g", "--target-directory", "--suffix", "--mode"]
    )
    target = (flags.get("-t") or flags.get("--target-directory") or [""])[-1]
    into = bool(target)
    if not target:
        if len(operands) < 2:
            for operand in operands:
                shell.world.emit(Kind.WRITE, shell.world.path(operand))
            return ""
        operands, target = operands[:-1], operands[-1]
    sources = [place for operand in operands for place in places(shell, operand)]
    recursive = moves or bool({"-r", "-R", "-a", "--recursive", "--archive"} & set(flags))
    texts = {source: shell.world.read(source, recursive=recursive) for source in sources}
    ends = _destinations(shell, sources, target, into=into)
    for number, end in enumerate(ends):
        source = sources[min(number, len(sources) - 1)]
        content = texts[source] if known(texts[source]) else None
        if {"-s", "--symbolic-link"} & set(flags):
            shell.world.symlink(source, end)
        shell.world.write(end, content)
        shell.world.move(source, end)
        if recursive and not known(texts[source]):
            shell.world.emit(Kind.WRITE, end, recursive=True)
    if recursive and ({"-T", "--no-target-directory"} & set(flags) or _contents(argv, operands)):
        # All that lies in the source goes right into the target.
        shell.world.emit(Kind.WRITE, f"{shell.world.path(target)}/{ANY}")
    if moves:
        for source in sources:
            shell.world.delete(source, recursive=True)
    return ""


def _contents(argv: list[str], operands: list[str]) -> bool:
    """Whether a source stands for its contents: `cp -r a/. b`, `rsync -a a/ b`."""
    synchronises = any(word.startswith("-") and "a" in word for word in argv)
    return any(o.endswith("/.") or (o.endswith("/") and synchronises) for o in operands)


@command("cp", "install", "scp", "rsync", "ditto")
def copy(shell: Shell, argv: list[str], stdin: str) -> str:
    """Copies; over the network where a name holds a colon."""
    if "-d" in argv and not any(a in ("-r", "-a", "-R") for a in argv) and "install" not in argv:
        _, operands = options(argv, ["-m", "-o", "-g"])
        if len(operands) == 1:
            shell.world.write(operands[0], None)
            return ""
    for word in argv:
        host, colon, rest = word.partition(":")
        if colon and "/" not in host and word[:1] != "-" and (rest or "@" in host or "." in host):
            shell.world.emit(Kind.NETWORK, host.rsplit("@", 1)[-1].lower())
            # That machine may be this one.
            shell.world.emit(Kind.READ, shell.world.path(rest or "~"), recursive=True)
    for word in argv:
        if word.startswith("--files-from="):
            _named_in(shell, word.partition("=")[2], argv)
    if "--delete" in argv:
        shell.world.emit(Kind.DELETE, shell.world.path(argv[-1]), recursive=True)
    return _transfer(shell, argv, moves=False)


def _named_in(shell: Shell, listing: str, argv: list[str]) -> None:
    """rsync reads the names of what it copies from a file; they are below its source."""
    _, operands = options(argv)
    names = read_all(shell, [listing])
    for source in operands[:-1]:
        if not known(names) or not names.strip():
            shell.world.emit(Kind.READ, shell.world.path(source), recursive=True)
            continue
        for name in names.split("\n"):
            if name:
                shell.world.read(f"{source.rstrip('/')}/{name}", recursive=True)


@command("mv", "rename")
def move(shell: Shell, argv: list[str], stdin: str) -> str:
    """Moves: what was there is gone."""
    return _transfer(shell, argv, moves=True)


@command("ln", "link")
def link(shell: Shell, argv: list[str], stdin: str) -> str:
    """Links; a symbolic one is followed when it is read later."""
    flags, operands = options(argv, ["-t", "-S"])
    if not operands:
        return ""
    target_directory = flags.get("-t", [""])[-1]
    sources = operands if target_directory or len(operands) == 1 else operands[:-1]
    last = target_directory or ("." if len(operands) == 1 else operands[-1])
    symbolic = "-s" in flags or "--symbolic" in flags
    for source in sources:
        into = bool(target_directory) or last.endswith(("/", ".")) or len(sources) > 1
        place = f"{last.rstrip('/')}/{_last(source)}" if into else last
        end = shell.world.path(place)
        if not symbolic:
            text = shell.world.read(source)
            shell.world.write(place, text if known(text) else None)
            continue
        base = end.rpartition("/")[0]
        shell.world.emit(Kind.READ, shell.world.path(source, base), recursive=True)
        shell.world.emit(Kind.WRITE, end)
        shell.world.symlink(source, end)
    return ""


@command("rm", "unlink", "rmdir", "shred", "srm", "trash", "wipe")
def remove(shell: Shell, argv: list[str], stdin: str) -> str:
    """Removes its operands."""
    flags, operands = options(argv, ["-n", "-s", "--iterations"])
    recursive = bool({"-r", "-R", "--recursive"} & set(flags))
    for operand in operands:
        for place in places(shell, operand):
            shell.world.delete(place, recursive=recursive)
    return ""


@command("touch", "mkdir", "mkfifo", "mknod")
def make(shell: Shell, argv: list[str], stdin: str) -> str:
    """Makes its operands; existing contents stay."""
    _flags, operands = options(argv, ["-m", "-d", "-t", "-r", "--date", "--reference", "--mode"])
    for operand in operands:
        path = shell.world.path(operand)
        if shell.world.exists(path) is not True:
            shell.world.emit(Kind.WRITE, path, content="")
    return ""


@command("truncate", "fallocate")
def truncate(shell: Shell, argv: list[str], stdin: str) -> str:
    """Cuts its operands."""
    _, operands = options(argv, ["-s", "--size", "-r", "--reference", "-l", "-o", "-n"])
    for operand in operands:
        for place in places(shell, operand):
            shell.world.write(place, None, existing=True)
    return ""


@command("chmod", "chown", "chgrp", "chattr", "setfacl", "chcon", "setfattr")
def permissions(shell: Shell, argv: list[str], stdin: str) -> str:
    """Changes who may do what with its operands, not their contents."""
    flags, operands = options(argv, ["--reference"])
    recursive = bool({"-R", "--recursive"} & set(flags))
    for operand in operands[1:] if len(operands) > 1 else operands:
        if operand[:1] in "+-=" and len(operand) <= 4:
            continue
        for place in places(shell, operand):
            shell.world.emit(Kind.WRITE, place, recursive=recursive, existing=True)
    return ""


@command("dd")
def dd(shell: Shell, argv: list[str], stdin: str) -> str:
    """Copies from `if=` to `of=`."""
    named = dict(word.split("=", 1) for word in argv if "=" in word)
    text = shell.world.read(named["if"]) if "if" in named else stdin
    if "of" not in named:
        return text
    shell.world.write(named["of"], text if known(text) else None)
    return ""


@command("split", "csplit")
def split(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads a file, writes parts of it."""
    _, operands = options(argv, ["-l", "-b", "-n", "-C", "-a", "-f", "-t"])
    read_all(shell, operands[:1])
    prefix = operands[1] if len(operands) > 1 else "x"
    shell.world.write(prefix + STAR, None)
    return ""


@command("cd", "pushd", "chdir")
def cd(shell: Shell, argv: list[str], stdin: str) -> str:
    """Changes the directory of the shell."""
    operands = [a for a in argv if a == "-" or a[:1] != "-"]
    world = shell.world
    if operands == ["-"]:
        world.cwd = world.env.get("OLDPWD", world.scope.workdir)
        return world.cwd + "\n"
    before = world.cwd
    target = operands[0] if operands else world.home
    if world.env.get("CDPATH") and target[:1] not in "/.~":
        # It may lie below any of these directories instead.
        world.emit(Kind.UNRESOLVED, "path")
    paths = world.globbed(world.path(target))
    world.cwd = paths[0] if len(paths) == 1 else world.path(target)
    world.env["OLDPWD"] = before
    return ""


@command("popd", "dirs")
def popd(shell: Shell, argv: list[str], stdin: str) -> str:
    """Back to an earlier directory."""
    shell.world.cwd = shell.world.env.get("OLDPWD", shell.world.scope.workdir)
    return shell.world.cwd + "\n"


@command("realpath", "readlink")
def realpath(shell: Shell, argv: list[str], stdin: str) -> str:
    """Resolved names."""
    _, operands = options(argv, ["--relative-to", "--relative-base"])
    return "".join(shell.world.path(operand) + "\n" for operand in operands)


@command("stat", "du", "tree", "ls", "ll", "dir", "vdir", "exa", "eza", "lsattr", "getfacl")
def listing(shell: Shell, argv: list[str], stdin: str) -> str:
    """Names below its operands."""
    flags, operands = options(argv, ["-I", "-L", "-P", "-c", "--format", "--printf", "-w", "-d"])
    if "-d" in argv:
        operands = [a for a in argv if a[:1] != "-"]
    recursive = bool({"-R", "--recursive", "--tree"} & set(flags))
    for operand in operands or ["."]:
        for place in places(shell, operand):
            shell.world.emit(Kind.LIST, place, recursive=recursive)
    if "-d" in flags and operands:
        return "".join(place + "\n" for o in operands for place in places(shell, o))
    if any(not known(o) for o in operands):
        return "".join(o + "\n" for o in operands)
    return ANY if all(shell.world.path(o) != "/" for o in operands or ["."]) else OPAQUE
