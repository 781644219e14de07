"""Methods of open files and of pathlib paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, EITHER, choices, from_glob, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.joining import join_paths
from harness_adapters.guard.effects.python.members import iterated
from harness_adapters.guard.effects.python.values import (
    DATA,
    Archive,
    Handle,
    PathValue,
    Value,
    either,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program


READS = frozenset({"read", "load", "open", "loadtxt", "read_text", "read_bytes", "sendfile"})


WRITES = frozenset({"save", "savefig", "savez", "savetxt", "write_text", "write_bytes", "dump"})


def texts_of(value: Value) -> list[str]:
    """The texts that a value may be."""
    return choices(text_of(value))


def read_paths(program: Program, path: Value) -> list[str]:
    """Effects of reading what a value names; returns the texts."""
    if isinstance(path, Handle):
        return [path.text]
    if isinstance(path, int):
        return [ANY]
    if isinstance(path, (list, tuple)):
        return [text for each in path for text in read_paths(program, each)]
    texts = []
    for text in texts_of(path):
        if re.match(r"(?:https?|ftp|s3|gs)://", text):
            from harness_adapters.guard.effects.shell.commands.table import host_of

            program.world.emit(Kind.NETWORK, host_of(text))
            continue
        for place in program.world.globbed(program.world.path(text)):
            texts.append(program.world.read(place))
    return texts


def opened(program: Program, path: Value, mode: str) -> Handle:
    """An open file: read at once, or noted as written."""
    if isinstance(path, Handle):
        return path
    if isinstance(path, int):
        return Handle(ANY)
    text = ""
    if not re.search(r"[wax]", mode) or "+" in mode:
        text = "".join(read_paths(program, path))
    if re.search(r"[wax+]", mode):
        for each in texts_of(path):
            program.world.write(each, "" if "w" in mode else None, append="a" in mode)
    name = text_of(path)
    return Handle(text, "" if EITHER in name else name)


def handle_method(
    program: Program, owner: Handle, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of an open file or of a process's output."""
    world = program.world
    if isinstance(owner, Archive) and name == "write" and args:
        read_paths(program, args[0])
        return None
    if name in ("write", "writelines", "writestr", "writetext") and args:
        content = (
            "".join(text_of(each) for each in iterated(program, args[0]))
            if (name == "writelines")
            else text_of(args[0])
        )
        if owner.path:
            path = world.path(owner.path)
            before = world.content(path) or ""
            world.remember(path, before + content)
            world.emit(Kind.WRITE, path, content=content if known(content) else None)
        return len(content)
    if name in ("readlines", "splitlines"):
        return [line + "\n" for line in owner.text.split("\n") if line]
    if name in ("split",):
        return owner.text.split()
    if name in ("read", "readline", "decode", "strip", "getvalue", "text", "json", "rstrip"):
        return owner.text if name != "json" else DATA
    if name in ("communicate",):
        return (owner.text, "")
    if name in ("extractall", "extract"):
        target = text_of(kwargs.get("path", args[0] if args else "."))
        world.emit(Kind.WRITE, world.path(target) + "/" + ANY)
        return None
    if name in ("execute", "executescript", "executemany") and args:
        from harness_adapters.guard.effects.shell.commands.filters import _SQL_FILE

        for found in _SQL_FILE.findall(text_of(args[0])):
            world.read(found)
        return DATA
    if name in ("add", "__enter__", "cursor", "makefile"):
        if name == "add" and args:
            world.emit(Kind.READ, world.path(text_of(args[0])), recursive=True)
        return owner
    return DATA


def path_method(
    program: Program, owner: PathValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of a pathlib path."""
    world = program.world
    text = owner.text
    if name in ("read_text", "read_bytes"):
        return "".join(read_paths(program, text))
    if name in ("write_text", "write_bytes"):
        content = text_of(args[0] if args else kwargs.get("data", ""))
        for each in texts_of(text):
            world.write(each, content)
        return None
    if name == "open":
        return opened(program, owner, text_of(args[0] if args else kwargs.get("mode", "r")))
    if name in ("unlink", "rmdir"):
        for each in texts_of(text):
            world.delete(each)
        return None
    if name in ("mkdir", "touch", "chmod"):
        for each in texts_of(text):
            world.emit(Kind.WRITE, world.path(each), existing=name == "chmod")
        return None
    if name in ("rename", "replace", "copy", "move", "copy_into", "move_into"):
        verb = "shutil.copy" if name.startswith("copy") else "os.rename"
        copied(program, verb, [owner, *args], kwargs)
        return args[0] if args else DATA
    if name in ("symlink_to", "hardlink_to", "link_to"):
        copied(program, "os.symlink", [*args[:1], owner], kwargs)
        return None
    if name in ("glob", "rglob", "iterdir", "walk"):
        pattern = text_of(args[0]) if args else "<all>"
        deep = name in ("rglob", "walk")
        base = text.rstrip("/")
        spelled = f"{base}/{ANY}/{from_glob(pattern)}" if deep else f"{base}/{from_glob(pattern)}"
        for each in texts_of(text):
            world.emit(Kind.LIST, world.path(each), recursive=deep or "**" in pattern)
        return [PathValue(place) for place in world.globbed(world.path(spelled))]
    if name in ("exists", "is_file", "is_dir", "stat", "lstat", "is_symlink"):
        for each in texts_of(text):
            world.emit(Kind.LIST, world.path(each))
        return DATA
    if name in ("joinpath", "__truediv__"):
        return join_paths(owner, *args)
    if name in ("resolve", "absolute", "readlink"):
        return PathValue(text_of(either([world.path(each) for each in texts_of(text)])))
    if name == "expanduser":
        return PathValue(world.path(text)) if text.startswith("~") else owner
    if name in ("with_name", "with_suffix", "with_stem") and args:
        base, _, last = text.rpartition("/")
        stem = last.rpartition(".")[0] or last
        new = text_of(args[0])
        made = new if name == "with_name" else stem + new
        return PathValue(f"{base}/{made}" if base else made)
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("relative_to",):
        return PathValue(ANY if not known(text) else text)
    return DATA


def copied(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Effects of copying, moving or linking, by the function's name."""
    world = program.world
    source = args[0] if args else kwargs.get("src")
    target = args[1] if len(args) > 1 else kwargs.get("dst", kwargs.get("target"))
    tree = name in ("shutil.copytree", "shutil.move") or name.startswith("os.rename")
    for text in texts_of(source):
        for goal in texts_of(target):
            if name == "os.symlink":
                place = world.path(goal)
                world.emit(Kind.READ, world.path(text, place.rpartition("/")[0]), recursive=True)
                world.emit(Kind.WRITE, place)
                world.symlink(text, place)
                continue
            origin = world.path(text)
            content = world.read(text, recursive=tree)
            place = world.write(goal, content if known(content) else None)
            last = text.rstrip("/").rsplit("/", 1)[-1]
            if "." not in place.rsplit("/", 1)[-1]:
                world.write(f"{place}/{last}", content if known(content) else None)
            world.move(origin, place)
            if tree and not known(content):
                world.emit(Kind.WRITE, place, recursive=True)
            if name not in ("os.link",) and not name.startswith("shutil.copy"):
                world.delete(origin, recursive=True)
