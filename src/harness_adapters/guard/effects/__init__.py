"""Effects: what a tool call would do, worked out without doing it.

`tools.tool_effects` takes a call apart into reads, writes, deletes, runs, network and the like
(`kinds.py`), with paths resolved against the directory, the variables, links and the files that
the session wrote (`world.py`). What can't be worked out is an effect as well.

    tools.py        which tool does what, for each agent
    shell/          bash, by tree-sitter; one file of commands for each field of work
    python/         Python, by ast
    javascript/     JavaScript, by tree-sitter
    scripts.py      files that are run: scripts, Makefiles, package.json
    patches.py      unified diffs and V4A
    tree.py         the files that the task came with
    holes.py        text of which parts are unknown
"""

from __future__ import annotations

from harness_adapters.guard.effects.kinds import Effect, Kind
from harness_adapters.guard.effects.tree import DirectoryTree, Tree
from harness_adapters.guard.effects.world import Scope, Session, World

__all__ = ["DirectoryTree", "Effect", "Kind", "Scope", "Session", "Tree", "World"]
