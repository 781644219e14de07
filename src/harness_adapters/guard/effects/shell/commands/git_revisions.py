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


MADE_STASH = "stash"
"""Among the branches of a session: it put something aside itself."""


_REFLOG = re.compile(r"@\{(?!u\}|upstream\}|push\})|ORIG_HEAD|FETCH_HEAD|MERGE_HEAD|AUTO_MERGE")


_REMOTE = re.compile(
    r"(?:refs/)?(?:remotes/|origin/|upstream/|fork/)|refs/(?!heads/(?:main|master)\b)|@\{u"
)


_USUAL_DIRECTORIES = frozenset(
    {
        *("src", "lib", "app", "pkg", "include", "tests", "test", "docs", "doc", "examples"),
        *("scripts", "tools", "data", "config", "benchmarks", "vendor", "internal", "cmd"),
    }
)
"""Where no tree can be asked, these are directories, not branches."""


_VALUED = (
    *("-L", "-S", "-G", "-O", "-U", "--author", "--since", "--until", "--grep", "--message"),
    *("--file", "--format", "--source", "--pathspec-from-file", "--output", "--exec"),
    "--max-count",
)


_COUNTED = ("log", "show", "rev-list", "whatchanged", "format-patch", "reflog", "stash")
"""Verbs of which `-n` takes a number."""


_VALUED_BY_VERB = {
    "commit": ("-m", "-F", "-c", "-C", "-t"),
    "grep": ("-e", "-f", "-m", "-A", "-B", "-C"),
    "clean": ("-e",),
    "merge": ("-m", "-s", "-X", "-F"),
    "stash": ("-m",),
    "difftool": ("-x", "-t", "--extcmd", "--tool"),
}


def split_arguments(
    argv: list[str], verb: str = ""
) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Options, operands before `--`, and paths after it."""
    valued = (*_VALUED, *_VALUED_BY_VERB.get(verb, ()), *(["-n"] if verb in _COUNTED else []))
    if "--" in argv:
        at = argv.index("--")
        flags, operands = options(argv[:at], valued)
        return flags, operands, argv[at + 1 :]
    flags, operands = options(argv, valued)
    return flags, operands, []


def reach(shell: Shell, text: str, *, may_be_path: bool = True) -> None:
    """Effects of reaching a commit by its name, a range or `REV:PATH`."""
    world = shell.world
    made = world.branches | world.session.branches
    if _REFLOG.search(text) and "stash@" not in text:
        world.emit(Kind.GIT, "reflog")
        return
    if text.startswith(":/"):
        # The youngest commit with this text that any ref reaches.
        world.emit(Kind.GIT, "future")
        return
    for part in [text] if ":" in text else re.split(r"\.\.\.?", text):
        name, colon, path = part.lstrip("^").partition(":")
        if path:
            world.emit(Kind.READ, world.path(path))
        if _PAST.fullmatch(name) or name in made:
            continue
        if name.startswith(("stash@", "stash^")) and MADE_STASH in made:
            continue
        if not known(name) and (name.startswith(ANY) or ("/" not in name and "." in name)):
            continue
        if (
            _REMOTE.match(name)
            or name.startswith("tags/")
            or colon
            or not may_be_path
            or not ("/" in name or "." in name or _lies_there(shell, name))
            or re.fullmatch(r"v?\d+(?:\.\d+)+[\w.-]*", name)
        ):
            world.emit(Kind.GIT, "future")


def _lies_there(shell: Shell, name: str) -> bool:
    exists = shell.world.exists(shell.world.path(name))
    return name in _USUAL_DIRECTORIES if exists is None else exists


def looks_like_path(shell: Shell, word: str) -> bool:
    """Whether a word that may be a revision or a path is a path."""
    if _PAST.fullmatch(word) or _REMOTE.match(word) or _REFLOG.search(word):
        return False
    if word in shell.world.branches | shell.world.session.branches:
        return False
    return "." in word or "/" in word or _lies_there(shell, word)
