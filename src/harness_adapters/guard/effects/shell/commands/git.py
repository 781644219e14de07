"""git: which commits a command reaches, what it writes, what it lets run.

HEAD, its ancestors and what the session committed are the past. Other branches, remote refs, the
reflog and the object store may hold the future, in which the task is solved.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    host_of,
    options,
    places,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell
from harness_adapters.guard.effects.shell.commands import git_writes
from harness_adapters.guard.effects.shell.commands.git_revisions import (
    MADE_STASH,
    reach,
    split_arguments,
)

_LETS_RUN = re.compile(
    r"(?i)(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy)|pager\.\w+"
    r"|diff\.external|sequence\.editor|credential\.helper|(?:diff|merge|filter)\..+\."
    r"(?:textconv|command|driver|clean|smudge|process|cmd)|(?:diff|merge)tool\..+\.cmd"
    r"|uploadpack\.packobjectshook|gpg\.(?:\w+\.)?program|interactive\.difffilter|alias\..+)"
)


@command("git")
def git(shell: Shell, argv: list[str], stdin: str) -> str:
    """Global options, then a verb."""
    world = shell.world
    words = list(argv)
    cwd = world.cwd
    aliases: dict[str, str] = {}
    paginates = False
    try:
        while words and words[0][:1] == "-":
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if word in ("-C", "-c", "--git-dir", "--work-tree", "--exec-path", "--config-env"):
                value = words.pop(0) if words else ""
                name = word
            elif not equals:
                paginates = paginates or word in ("-p", "--paginate")
                continue
            if name == "-C":
                world.cwd = world.path(value)
                world.emit(Kind.EXECUTE, world.cwd)
            elif name == "-c":
                key, _, setting = value.partition("=")
                if key.lower().startswith("alias."):
                    aliases[key[6:]] = setting
                else:
                    _setting(shell, key, setting)
            elif name == "--work-tree":
                world.cwd = world.path(value)
            elif name == "--git-dir":
                world.read(value, recursive=True)
        for name in ("GIT_PAGER", "GIT_EDITOR", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "PAGER"):
            if world.env.get(name):
                shell.run(world.env[name])
        if world.env.get("GIT_DIR"):
            world.read(world.env["GIT_DIR"], recursive=True)
        if not words or words[0] == "help" or words[-1] == "--help":
            return ANY
        verb, rest = words[0], words[1:]
        if not known(verb):
            world.emit(Kind.UNRESOLVED, "code")
            return ANY
        if verb in aliases:
            return _alias(shell, aliases[verb], rest, stdin)
        return _VERBS.get(verb, _past)(shell, verb, rest, stdin)
    finally:
        world.cwd = cwd


def _alias(shell: Shell, text: str, rest: list[str], stdin: str) -> str:
    if text.startswith("!"):
        return shell.run(" ".join([text[1:], *rest]), stdin)
    return shell.run(" ".join(["git", text, *rest]), stdin)


def _setting(shell: Shell, key: str, value: str) -> None:
    if not _LETS_RUN.fullmatch(key):
        return
    if key.lower() == "core.hookspath":
        shell.world.emit(Kind.EXECUTE, shell.world.path(value))
    elif key.lower().startswith("alias."):
        _alias(shell, value, [], "")
    elif value not in ("true", "false", "", "cat", "less"):
        shell.run(value.lstrip("!"))


_ALL = ("--all", "--branches", "--remotes", "--tags", "--glob", "--reflog", "--walk-reflogs", "-g")


_ON_NAMES_ALONE = ("ls-files", "check-ignore", "check-attr")


def _past(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs that only look: log, show, diff, blame, grep, …"""
    flags, operands, paths = split_arguments(argv, verb)
    if set(_ALL) & set(flags) and verb != "describe":
        shell.world.emit(Kind.GIT, "future")
    if verb == "difftool":
        for text in flags.get("-x", []) + flags.get("--extcmd", []):
            shell.run(text)
    if verb == "grep":
        operands = operands[0 if "-e" in flags or "-f" in flags else 1 :]
        if "--no-index" in flags or "-O" in flags or "--open-files-in-pager" in flags:
            paths = paths + operands
    if verb in ("diff", "difftool") and (
        "--no-index" in flags
        or (
            len(operands + paths) == 2
            and any((o[:1] in "/~" or o.startswith("..")) for o in operands + paths)
        )
    ):
        paths, operands = operands + paths, []
    if verb in _ON_NAMES_ALONE:
        paths, operands = [], []
    if verb == "worktree":
        operands = operands[2:] if operands[:1] == ["add"] else []
    for at, operand in enumerate(operands):
        # After a revision, a bare word is a path.
        if not (at and re.fullmatch(r"[\w-]+", operand) and verb != "show"):
            reach(shell, operand)
        if operand[:1] in "/~" or operand.startswith(".."):
            paths = [*paths, operand]
    for path in paths:
        for place in places(shell, path):
            shell.world.emit(Kind.READ, place)
    for flag in ("--output", "-o"):
        for path in flags.get(flag, []):
            shell.world.write(path, None)
    if verb == "rev-parse" and "--show-toplevel" in flags:
        return shell.world.scope.workdir + "\n"
    if verb == "ls-files":
        return shell.world.cwd + "/" + ANY + "\n"
    if verb == "submodule" and "foreach" in operands:
        shell.run(" ".join(argv[argv.index("foreach") + 1 :]))
    return ANY


def _objects(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs below the refs: every object, whoever points at it."""
    flags, operands, _ = split_arguments(argv, verb)
    reaches_all = verb != "cat-file" or any("batch" in flag for flag in flags)
    if reaches_all:
        shell.world.emit(Kind.GIT, "objects")
    for operand in operands:
        if operand not in ("blob", "tree", "commit", "tag"):
            reach(shell, operand, may_be_path=False)
    return ANY


def _refs(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs that show every ref."""
    shell.world.emit(Kind.GIT, "reflog" if verb == "reflog" else "future")
    return ANY


def _rev_list(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    flags, operands, _paths = split_arguments(argv, verb)
    if "--max-parents" in flags and "HEAD" in operands:
        return "0000000"
    return _past(shell, verb, argv, stdin)


def _remote(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs that speak to a remote."""
    flags, operands, _ = split_arguments(argv, verb)
    world = shell.world
    if verb == "clone" and operands and "://" not in operands[0] and ":" not in operands[0]:
        world.read(operands[0], recursive=True)
        world.emit(Kind.GIT, "objects")
        return ANY
    hosts = [host_of(o) for o in operands if "://" in o or re.match(r"[\w.-]+@[\w.-]+:", o)]
    for flag in ("--upload-pack", "--receive-pack", "-u", "--exec"):
        for text in flags.get(flag, []):
            shell.run(text)
    world.emit(Kind.GIT, "remote")
    for host in hosts or [ANY]:
        world.emit(Kind.NETWORK, host)
    return ANY


def _remotes(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    if argv[:1] and argv[0] in ("update", "show", "prune"):
        return _remote(shell, verb, argv, stdin)
    if argv[:1] and argv[0] in ("add", "set-url"):
        shell.world.emit(Kind.GIT, "remote")
    return ANY


def _submodule(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    if argv[:1] and argv[0] in ("update", "add", "sync", "init"):
        return _remote(shell, verb, argv[1:], stdin)
    return _past(shell, verb, argv, stdin)


def _config(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Settings; some of them are programs."""
    flags, operands = options(argv, ["-f", "--file", "--type", "--default"])
    for path in flags.get("-f", []) + flags.get("--file", []):
        shell.world.read(path)
    if operands[:1] in (["set"], ["get"], ["unset"], ["list"]):
        operands = operands[1:]
    if len(operands) > 1 and "--get" not in flags:
        _setting(shell, operands[0], operands[1])
        if re.fullmatch(
            r"(?i)core\.(hookspath|fsmonitor|worktree)|include(if.*)?\.path", operands[0]
        ):
            shell.world.emit(Kind.GIT, "internals")
        elif re.match(r"(?i)remote\..*\.(url|fetch)|url\.", operands[0]):
            shell.world.emit(Kind.GIT, "remote")
    return ANY


def _running(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs that run a command for each commit: bisect run, rebase --exec."""
    flags, operands = options(argv, ["-x", "--exec", "--onto", "-s", "-X"], stop=verb == "bisect")
    for text in flags.get("-x", []) + flags.get("--exec", []):
        shell.run(text)
    if verb == "bisect" and operands[:1] == ["run"]:
        shell.run(" ".join(operands[1:]))
    elif verb != "bisect":
        for operand in operands:
            reach(shell, operand, may_be_path=False)
    return ANY


def _stash(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Puts own changes aside; what the session didn't stash is another's, and may be the future."""
    world = shell.world
    flags, operands, _ = split_arguments(argv, verb)
    action = operands[0] if operands else "push"
    if action in ("push", "save"):
        world.branches.add(MADE_STASH)
    elif (action != "list" or {"-p", "--patch"} & set(flags)) and MADE_STASH not in (
        world.branches | world.session.branches
    ):
        world.emit(Kind.GIT, "future")
    return ANY


def _local(shell: Shell, verb: str, argv: list[str], stdin: str) -> str:
    """Verbs on the index and on own commits; what lies elsewhere is read."""
    flags, operands, paths = split_arguments(argv, verb)
    files = flags.get("-F", []) + flags.get("--file", [])
    elsewhere = [o for o in operands + paths if o[:1] in "/~" or o.startswith("..")]
    for path in [*files, *elsewhere] + (operands if verb == "hash-object" else []):
        if path != "-":
            shell.world.read(path, recursive=verb == "add")
    return ANY


_Verb = Callable[["Shell", str, list[str], str], str]
_VERBS: dict[str, _Verb] = {
    **dict.fromkeys(
        ("fsck", "unpack-objects", "verify-pack", "cat-file", "count-objects"), _objects
    ),
    **dict.fromkeys(
        ("show-index", "index-pack", "unpack-file", "pack-objects", "bundle"), _objects
    ),
    **dict.fromkeys(("fast-export", "archive-all", "lost-found", "prune-packed"), _objects),
    **dict.fromkeys(("for-each-ref", "show-ref", "reflog", "show-branch"), _refs),
    **dict.fromkeys(("fetch", "pull", "push", "clone", "ls-remote", "send-email"), _remote),
    **dict.fromkeys(("fetch-pack", "send-pack", "request-pull", "svn", "lfs", "daemon"), _remote),
    **dict.fromkeys(("checkout", "switch", "restore"), git_writes.checkout),
    **dict.fromkeys(("branch", "tag"), git_writes.branch),
    **dict.fromkeys(("rm", "mv"), git_writes.remove),
    **dict.fromkeys(("apply", "am"), git_writes.apply),
    **dict.fromkeys(
        ("update-ref", "symbolic-ref", "replace", "filter-branch", "pack-refs"),
        git_writes.internals,
    ),
    **dict.fromkeys(("gc", "prune", "repack", "hash-object", "update-index", "notes"), _local),
    **dict.fromkeys(("bisect", "rebase", "cherry-pick", "merge", "revert"), _running),
    **dict.fromkeys(("add", "commit", "status", "init", "stage"), _local),
    "rev-list": _rev_list,
    "remote": _remotes,
    "submodule": _submodule,
    "reset": git_writes.reset,
    "clean": git_writes.clean,
    "config": _config,
    "stash": _stash,
}
