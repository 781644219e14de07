"""Attributes, items and imports: what a name leads to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from harness_adapters.guard.effects.holes import ANY, OPAQUE, degraded, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.pure import CONSTANTS
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Alt,
    Function,
    Handle,
    Instance,
    Method,
    PathValue,
    Ref,
    Unknown,
    Value,
    either,
    is_concrete,
    is_dark,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program


_REACH = frozenset(
    {
        *("__globals__", "__subclasses__", "__builtins__", "__bases__", "__base__", "__mro__"),
        *("__getattribute__", "__code__", "__loader__", "__spec__", "__closure__", "mro"),
        *("func_globals", "gi_frame", "cr_frame", "__reduce__", "__init_subclass__"),
    }
)


_INSTALLED = frozenset(
    {*sys.stdlib_module_names, "pytest", "_pytest", "pluggy", "nose", "hypothesis", "coverage"}
)
"""Modules that never are the task's own."""


_BUILTIN_MODULES = ("builtins", "__builtins__", "__builtin__")


def attribute(program: Program, owner: Value, name: str) -> Value:
    """`owner.name`."""
    if isinstance(owner, Alt):
        return either([attribute(program, item, name) for item in owner.values])
    if name in _REACH:
        return DARK
    if isinstance(owner, Ref):
        return _member(program, owner, name)
    if isinstance(owner, Instance):
        return _instance_attribute(program, owner, name)
    if isinstance(owner, PathValue):
        return _path_attribute(owner, name)
    if isinstance(owner, Handle):
        if name in ("stdout", "buffer", "stderr", "text", "content", "output"):
            return owner
        return Method(owner, name)
    if isinstance(owner, Unknown):
        return DARK if owner.dark else Method(owner, name)
    if isinstance(owner, Function):
        return DARK if name in ("__dict__", "__wrapped__") else DATA
    return Method(owner, name)


def _member(program: Program, owner: Ref, name: str) -> Value:
    if owner.name in _BUILTIN_MODULES and name != "__dict__":
        return Ref(name)
    full = f"{owner.name}.{name}"
    if full == "os.path.join" or full.startswith("posixpath."):
        return Ref("os.path." + name)
    if full in CONSTANTS:
        return CONSTANTS[full]
    if full in ("sys.argv",):
        return list(program.argv) or [""]
    if full in ("sys.stdin", "sys.stdin.buffer"):
        return Handle(program.stdin or ANY)
    if full == "sys.executable":
        return "/usr/bin/python3"
    if name == "__file__" and owner.name.split(".")[0] in _INSTALLED:
        place = owner.name.replace(".", "/")
        return f"/usr/lib/python3/site-packages/{place}/__init__.py"
    if owner.name.startswith("git.Repo()"):
        return _of_repository(program, owner, name)
    if full.startswith("posix.") or full.startswith("nt."):
        return Ref("os." + name)
    if full.startswith("io.") or full.startswith("_io."):
        return Ref("open") if name == "open" else Ref(full)
    return Ref(full)


def _of_repository(program: Program, owner: Ref, name: str) -> Value:
    """GitPython: `Repo().git.log` is a command of git; what else it holds may be any ref."""
    if owner.name == "git.Repo()" and name not in (
        *("git", "index", "head", "active_branch", "is_dirty", "working_dir", "untracked_files"),
        *("working_tree_dir", "bare", "close", "config_reader"),
    ):
        program.world.emit(Kind.GIT, "future")
    return Ref(f"{owner.name}.{name}")


def _instance_attribute(program: Program, owner: Instance, name: str) -> Value:
    seen: list[Instance] = [owner]
    while seen:
        place = seen.pop(0)
        if name in place.attributes:
            found = place.attributes[name]
            if isinstance(found, Function) and owner.cls is not None:
                bound = Function(found.node, found.env, owner)
                return program.call(bound, [], {}) if _is_property(found) else bound
            return found
        if place.cls is not None:
            seen.append(place.cls)
        for base in place.bases:
            if isinstance(base, Instance):
                seen.append(base)
            elif isinstance(base, Ref):
                return Ref(f"{base.name}.{name}")
    return DATA


def _is_property(function: Function) -> bool:
    decorators = getattr(function.node, "decorator_list", [])
    return any(
        getattr(each, "id", getattr(each, "attr", "")) in ("property", "cached_property")
        for each in decorators
    )


def _path_attribute(owner: PathValue, name: str) -> Value:
    text = owner.text.rstrip("/")
    if name == "parent":
        return PathValue(text.rpartition("/")[0] or ("/" if text.startswith("/") else "."))
    if name == "name":
        return text.rpartition("/")[2]
    if name in ("stem", "suffix"):
        base = text.rpartition("/")[2]
        stem, dot, suffix = base.rpartition(".")
        return (stem or base) if name == "stem" else dot + suffix
    if name == "parts":
        return [p or "/" for p in text.split("/")]
    if name == "parents":
        parts = text.split("/")
        return [PathValue("/".join(parts[:n]) or "/") for n in range(len(parts) - 1, 0, -1)]
    return Method(owner, name)


def item(program: Program, owner: Value, key: Value) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Ref):
        return _item_of_module(program, owner, key)
    if isinstance(owner, (str, bytes, list, tuple, dict)):
        if isinstance(owner, (list, tuple, dict)) or is_concrete(owner):
            try:
                plain: Any = owner
                if isinstance(key, (int, slice, str, bytes, float)) or key is None:
                    return plain[key]
            except (KeyError, IndexError, TypeError, ValueError):
                return DARK if is_concrete(owner) and owner else DATA
        if isinstance(owner, (list, tuple)):
            return either(list(owner)) if owner else DATA
        if isinstance(owner, dict):
            return either(list(owner.values())) if owner else DATA
        return OPAQUE if is_concrete(owner) else degraded(text_of(owner))
    if isinstance(owner, Method) and owner.name == "__dict__":
        return attribute(program, owner.owner, text_of(key))
    return DARK if is_dark(owner) else DATA


def _item_of_module(program: Program, owner: Ref, key: Value) -> Value:
    name = text_of(key)
    if owner.name == "sys.modules":
        return Ref(name) if known(name) else DARK
    if owner.name == "os.environ":
        program.world.emit(Kind.ENVIRONMENT, name)
        return {"HOME": program.world.home, "PWD": program.world.cwd}.get(
            name, program.world.env.get(name, ANY)
        )
    if owner.name.endswith(".__dict__"):
        if not known(name):
            return DARK
        base = owner.name.removesuffix(".__dict__")
        return Ref(name) if base in _BUILTIN_MODULES else Ref(f"{base}.{name}")
    if owner.name in _BUILTIN_MODULES:
        return Ref(name) if known(name) else DARK
    if owner.name == "sys.path":
        return ANY
    return DATA


def iterated(program: Program, items: Value) -> list[Value]:
    """What a loop over a value yields; one unknown where that isn't known."""
    if isinstance(items, (list, tuple, set, frozenset, dict)):
        return list(items)
    if isinstance(items, str):
        return list(items) if known(items) else [degraded(items)]
    if isinstance(items, (bytes, range)):
        return list(items)
    if isinstance(items, Handle):
        text = items.text
        return [line + "\n" for line in text.split("\n") if line] if text else []
    if isinstance(items, PathValue):
        return [items]
    if isinstance(items, Alt):
        return [each for inner in items.values for each in iterated(program, inner)]
    if isinstance(items, Ref) and items.name == "os.environ":
        program.world.emit(Kind.ENVIRONMENT, "<all>")
    return [DARK if is_dark(items) else DATA]


_JUDGING = (
    *("numpy.testing", "np.testing", "pandas.testing", "math.", "os._exit", "sys.exit", "sys.exc"),
    *("operator.", "importlib.", "json.", "random."),
)
"""Names of modules that tests lean on; who replaces one of them bends the test."""


def set_attribute(program: Program, owner: Value, name: str, new: Value) -> None:
    """`owner.name = new`: on a module of a test runner this bends the tests."""
    if not isinstance(owner, Ref):
        return
    full = f"{owner.name}.{name}"
    if full.split(".")[0] in (
        "pytest",
        "_pytest",
        "unittest",
        "builtins",
        "doctest",
        "time",
    ) or full.startswith(_JUDGING):
        program.world.emit(Kind.HIJACK, "patch")
    elif full == "sys.path":
        extend_path(program, new)


def set_item(program: Program, owner: Value, key: Value, new: Value) -> None:
    """`owner[key] = new`."""
    if isinstance(owner, Ref) and owner.name == "os.environ":
        program.world.emit(Kind.ENVIRONMENT, f"{text_of(key)}={text_of(new)}")
    elif owner == Ref("sys.path"):
        extend_path(program, new)
    elif isinstance(owner, Ref) and owner.name == "sys.modules":
        if text_of(key).split(".")[0] in ("pytest", "_pytest", "unittest"):
            program.world.emit(Kind.HIJACK, "patch")
    elif isinstance(owner, dict):
        owner[key if isinstance(key, (str, int, bytes, float)) else text_of(key)] = new
    elif isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner):
        owner[key] = new


def extend_path(program: Program, directories: Value) -> None:
    """Directories that imports are looked for in: all modules there may be read and run."""
    for directory in iterated(program, directories):
        text = text_of(directory)
        if "/" in text and not isinstance(directory, Unknown):
            path = program.world.path(text)
            program.world.emit(Kind.READ, path + "/" + ANY)
            program.path.append(path)


def import_module(program: Program, name: str) -> dict[str, Value] | None:
    """An import: a file of the session's own is run; names that it defines come back."""
    world = program.world
    for base in [world.cwd, *program.path]:
        for path in (f"{base}/{name.replace('.', '/')}.py", f"{base}/{name}/__init__.py"):
            if not world.written(path) or world.deferred:
                continue
            text = world.content(path)
            if text is None or not known(text):
                world.emit(Kind.UNRESOLVED, "code")
                return None
            from harness_adapters.guard.effects.python import parse

            tree = parse(text)
            if tree is None or not world.enter():
                return None
            inner = type(program)(world, program.argv, program.stdin, path)
            inner.block(tree.body, inner.globals)
            program.functions += inner.functions
            world.leave()
            return inner.globals
    return None
