"""Code that bends the test that will judge it: by what it does to frames, exits and equality."""

from __future__ import annotations

import ast

from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.world import World

_FRAMES = frozenset({"f_locals", "f_globals", "f_builtins", "tb_frame"})
_COMPARISONS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__bool__"})
_RUNNERS = ("pytest", "_pytest", "unittest", "nose", "doctest", "py.test")
_MARKS = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER")


def look_for_hijacks(world: World, tree: ast.Module, *, library: bool) -> None:
    """Effects of the kind HIJACK for what a whole program holds."""
    exits = detects = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in _FRAMES:
                world.emit(Kind.HIJACK, "frames")
            elif node.attr == "_exit":
                exits = True
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            detects = detects or node.value in _MARKS
        elif isinstance(node, ast.Compare):
            detects = detects or _asks_for_runner(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in _COMPARISONS and _always(node, node.name):
                world.emit(Kind.HIJACK, "equal")
            elif node.name.startswith(
                ("pytest_runtest", "pytest_collection", "pytest_report")
            ) or node.name in ("pytest_configure", "pytest_sessionfinish", "pytest_pyfunc_call"):
                world.emit(Kind.HIJACK, "patch")
    if library and (exits or detects):
        world.emit(Kind.HIJACK, "exit" if exits else "detect")


def _asks_for_runner(node: ast.Compare) -> bool:
    """`'pytest' in sys.modules`, `'unittest' in sys.argv[0]` and the like."""
    if not any(isinstance(op, (ast.In, ast.NotIn, ast.Eq)) for op in node.ops):
        return False
    sides = [node.left, *node.comparators]
    names = [s.value for s in sides if isinstance(s, ast.Constant) and isinstance(s.value, str)]
    if not any(name in _RUNNERS for name in names):
        return False
    text = " ".join(ast.unparse(s) for s in sides if not isinstance(s, ast.Constant))
    return any(word in text for word in ("modules", "argv", "environ", "stack", "_getframe"))


def _always(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a comparison returns True (for `__ne__`: False) whatever it is given."""
    body = [
        s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or name == "__bool__":
        return False
    value = body[0].value
    wanted = name != "__ne__"
    return isinstance(value, ast.Constant) and value.value is wanted
