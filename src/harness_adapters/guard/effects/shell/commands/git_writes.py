"""Verbs of git that change the working tree, the refs or the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    options,
    places,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell
from harness_adapters.guard.effects.shell.commands.git_revisions import (
    looks_like_path,
    reach,
    split_arguments,
)


def branch(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Lists, makes and removes branches and tags."""
    flags, operands = options(argv, ["-m", "-F", "-u", "--set-upstream-to", "--format", "--sort"])
    if {"-a", "-r", "--all", "--remotes"} & set(flags):
        shell.world.emit(Kind.GIT, "future")
    if {"--contains", "--no-contains", "-d", "-D", "-m", "-M", "--delete"} & set(flags):
        return ANY
    if "-l" in flags or "--list" in flags or not operands:
        return ANY
    shell.world.branches.add(operands[0])
    for start in operands[1:]:
        reach(shell, start, may_be_path=False)
    return ANY


def checkout(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Changes the working tree: paths of a commit, or all of it."""
    world = shell.world
    explicit = "--" in argv
    before = argv[: argv.index("--")] if explicit else argv
    paths = argv[argv.index("--") + 1 :] if explicit else []
    flags, operands = options(before, ["-b", "-B", "-c", "-C", "-s", "--source", "--orphan"])
    for flag in ("-b", "-B", "-c", "-C", "--orphan"):
        world.branches |= set(flags.get(flag, []))
    source = (flags.get("-s") or flags.get("--source") or [""])[-1]
    if verb == "restore":
        paths, operands = paths + operands, []
        if "--staged" in flags and not ({"--worktree", "-W", "-SW"} & set(flags)) and not source:
            return ANY
    elif operands and not explicit and looks_like_path(shell, operands[0]):
        paths, operands = operands, []
    elif operands:
        source, paths = operands[0], paths + operands[1:]
    if source and source != "-":
        reach(shell, source, may_be_path=False)
    if not paths:
        if (
            source
            and source not in ("-", "HEAD", "main", "master", "@")
            and source not in world.branches | world.session.branches
            and not ({"-b", "-B", "-c", "-C"} & set(flags))
        ):
            world.emit(Kind.GIT, "rewind")
        return ANY
    for path in paths:
        if source in ("", "HEAD", "@"):
            # The committed state comes back: what the task came with, or what was committed since.
            world.emit(Kind.READ, world.path(path))
            continue
        for place in places(shell, path):
            world.emit(Kind.WRITE, place, recursive=True, existing=True)
    return ANY


def reset(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Moves HEAD; --hard takes the working tree along."""
    flags, operands, _paths = split_arguments(argv, verb)
    for operand in operands:
        reach(shell, operand)
    target = operands[0] if operands else "HEAD"
    if {"--hard", "--keep", "--merge"} & set(flags) and target not in ("HEAD", "@"):
        world = shell.world
        world.emit(Kind.WRITE, world.scope.workdir + "/" + ANY, recursive=True, existing=True)
        world.emit(Kind.GIT, "rewind")
    return ANY


def clean(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Removes what isn't tracked."""
    flags, operands, paths = split_arguments(argv, verb)
    if {"-n", "--dry-run"} & set(flags):
        return ANY
    for path in [*operands, *paths]:
        shell.world.delete(path, recursive=True)
    if not operands + paths and "-x" in flags:
        shell.world.emit(Kind.DELETE, shell.world.cwd, recursive=True)
    return ANY


def remove(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """`git rm` and `git mv`."""
    flags, operands, paths = split_arguments(argv, verb)
    if verb == "mv":
        from harness_adapters.guard.effects.shell.commands.files import move

        return move(shell, operands + paths, stdin)
    if "--cached" not in flags:
        for path in operands + paths:
            for place in places(shell, path):
                shell.world.delete(place, recursive="-r" in flags)
    return ANY


def apply(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Applies a patch to the working tree."""
    from harness_adapters.guard.effects.patches import apply_diff

    flags, operands = options(argv, ["-p", "-C", "--directory", "--exclude", "--include"])
    if verb == "apply" and {"--check", "--stat", "--numstat", "--summary"} & set(flags):
        return ANY
    strip = (flags.get("-p") or ["1"])[-1]
    for path in operands:
        place = shell.world.path(path)
        if shell.world.written(place) and not known(shell.world.content(place) or ANY):
            shell.world.emit(Kind.UNRESOLVED, "code")
    below = (flags.get("--directory") or [""])[-1]
    if below:
        # Where the patch's own names can't be read, at least this much is known of them.
        shell.world.emit(Kind.WRITE, f"{shell.world.path(below)}/{ANY}")
    for text in [shell.world.read(o) for o in operands if o != "-"] or [stdin]:
        apply_diff(shell.world, text, int(strip) if strip.isdigit() else 1)
    return ANY


def internals(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs that change refs, history or the store itself."""
    shell.world.emit(Kind.GIT, "internals")
    return ANY
