"""Names of commits: which belong to the past of the working tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    options,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell


_PAST = re.compile(r"(?:HEAD|@|main|master)(?:[~^]\d*|\^\{\w*\})*|[0-9a-f]{7,40}(?:[~^]\d*)*|-?\d*")


_REFLOG = re.compile(r"@\{(?!u\}|upstream\}|push\})|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|AUTO_MERGE")


_REMOTE = re.compile(
    r"(?:refs/)?(?:remotes/|origin/|upstream/|fork/)|refs/(?!heads/(?:main|master)\b)|@\{u"
)


_VALUED = (
    *("-L", "-n", "-S", "-G", "-O", "-U", "--author", "--since", "--until", "--grep", "--message"),
    *("--file", "--format", "--source", "--pathspec-from-file", "--output", "--exec"),
    "--max-count",
)


_VALUED_BY_VERB = {
    "commit": ("-m", "-F", "-c", "-C", "-t"),
    "grep": ("-e", "-f", "-m", "-A", "-B", "-C"),
    "clean": ("-e",),
    "merge": ("-m", "-s", "-X", "-F"),
    "stash": ("-m",),
}


def split_arguments(
    argv: list[str], verb: str = ""
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Options, operands before `--`, and paths after it."""
    valued = (*_VALUED, *_VALUED_BY_VERB.get(verb, ()))
    if "--" in argv:
        at = argv.index("--")
        flags, operands = options(argv[:at], valued)
        return flags, operands, argv[at + 1 :]
    flags, operands = options(argv, valued)
    return flags, operands, []


def reach(shell: Shell, text: str, *, may_be_path: bool = True) -> None:
    """Effects of reaching a commit by its name, a range or `REV:PATH`."""
    world = shell.world
    if _REFLOG.search(text) and "stash@" not in text:
        world.emit(Kind.GIT, "reflog")
        return
    for part in re.split(r"\.\.\.?", text):
        name, colon, _ = part.lstrip("^").partition(":")
        if _PAST.fullmatch(name) or name in world.branches | world.session.branches:
            continue
        if name.startswith("stash") or not known(name):
            if name.startswith("stash"):
                continue
            if name.startswith(ANY) or ("/" not in name and "." in name):
                continue
        if (
            _REMOTE.match(name)
            or name.startswith("tags/")
            or colon
            or not may_be_path
            or not ("/" in name or "." in name or world.exists(world.path(name)))
            or re.fullmatch(r"v?\d+(?:\.\d+)+[\w.-]*", name)
        ):
            world.emit(Kind.GIT, "future")


def looks_like_path(shell: Shell, word: str) -> bool:
    """Whether a word that may be a revision or a path is a path."""
    if _PAST.fullmatch(word) or _REMOTE.match(word) or _REFLOG.search(word):
        return False
    if word in shell.world.branches | shell.world.session.branches:
        return False
    return "." in word or "/" in word or bool(shell.world.exists(shell.world.path(word)))
