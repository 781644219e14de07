"""Patches: unified diffs and the V4A form (`*** Begin Patch`) by their targets and new lines."""

from __future__ import annotations

import re

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.world import World

_V4A = re.compile(
    r"^\*\*\* (?:(Add|Update|Delete) File:[ \t]*(.+?)|Move to:[ \t]*(.+?))[ \t\r]*$", re.MULTILINE
)
_ADDED = re.compile(r"^\+(?!\+\+ )(.*)$", re.MULTILINE)
_DIFF = re.compile(r"^(---|\+\+\+|rename from|rename to|copy to) ([^\t\n]+)")


def apply_v4a(world: World, text: str) -> None:
    """Effects of a V4A patch. One that names no file is unresolved."""
    from harness_adapters.guard.effects.scripts import written_code

    heads = list(_V4A.finditer(text))
    changes: list[tuple[str, str, str]] = []
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        added = "\n".join(_ADDED.findall(text, head.end(), end))
        verb, path = (head[1], head[2]) if head[1] else ("Move", head[3])
        changes.append((verb, path, added))
    for verb, path, lines in changes:
        if verb == "Delete":
            world.delete(path)
            continue
        whole = lines + "\n" if verb == "Add" else None
        place = world.path(path)
        before = world.content(place)
        made = _edited(before, lines) if verb == "Update" and before is not None else whole
        world.emit(Kind.WRITE, place, existing=verb == "Update", content=lines)
        world.remember(place, made)
        written_code(world, place, lines if made is None else made)
    if not heads:
        apply_diff(world, text, 0, guess=True)


def _edited(before: str, added: str) -> str | None:
    # Where the lines go is the agent's business; that they are in the file is what counts.
    return before + "\n" + added if not before.endswith("\n") else before + added


def apply_diff(
    world: World, text: str, strip: int, *, named: bool = False, guess: bool = False
) -> None:
    """Effects of a unified diff with `strip` leading components taken off.

    One without a target is unresolved, unless the command names it.
    """
    from harness_adapters.guard.effects.scripts import written_code

    if not known(text):
        world.emit(Kind.WRITE, world.cwd + "/" + ANY)
        return
    added: dict[str, list[str]] = {}
    current = old = ""
    for line in text.splitlines():
        match = _DIFF.match(line) if line[:1] in "-+rc" else None
        if match:
            path = match[2].strip().strip('"')
            if path == "/dev/null":
                if match[1] == "+++":
                    current = ""
                    _each(world, old, strip, guess, delete=True)
                continue
            if match[1] in ("---", "rename from"):
                old = path
                if match[1] == "rename from":
                    _each(world, path, 0, guess, delete=True)
            else:
                current = path
                added.setdefault(path, [])
        elif line.startswith("+") and current:
            added[current].append(line[1:])
    for path, lines in added.items():
        new = "\n".join(lines)
        for place in _each(world, path, strip, guess, content=new):
            written_code(world, place, new)
    if not added and not old and not named:
        world.emit(Kind.UNRESOLVED, "shape")


def _each(
    world: World,
    path: str,
    strip: int,
    guess: bool,
    *,
    delete: bool = False,
    content: str | None = None,
) -> list[str]:
    """The path as written and without its first components: tools guess, and so must we."""
    names = {"/".join(path.split("/")[strip:]) or path}
    if guess or path.startswith(("a/", "b/")):
        names.add(path.removeprefix("a/").removeprefix("b/"))
    places = []
    for name in sorted(names):
        if delete:
            world.delete(name)
            continue
        place = world.path(name)
        world.emit(Kind.WRITE, place, existing=True, content=content)
        world.remember(place, None if world.content(place) is None else ANY)
        places.append(place)
    return places
