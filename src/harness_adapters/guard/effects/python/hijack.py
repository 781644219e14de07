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
        elif isinstance(node, (ast.Compare, ast.GeneratorExp, ast.ListComp)):
            detects = detects or _asks_for_runner(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith", "find", "count", "get", "__contains__"):
                detects = detects or _asks_for_runner(node)
        elif isinstance(node, ast.ClassDef):
            if any(_assigned_always(statement) for statement in node.body):
                world.emit(Kind.HIJACK, "equal")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in _COMPARISONS and _always(node, node.name):
                world.emit(Kind.HIJACK, "equal")
            elif node.name.startswith(
                ("pytest_runtest", "pytest_collection", "pytest_report")
            ) or node.name in ("pytest_configure", "pytest_sessionfinish", "pytest_pyfunc_call"):
                world.emit(Kind.HIJACK, "patch")
    if library and (exits or detects):
        world.emit(Kind.HIJACK, "exit" if exits else "detect")


def _asks_for_runner(node: ast.AST) -> bool:
    """`'pytest' in sys.modules`, `sys.argv[0].endswith('pytest')` and the like."""
    names = [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    if not any(name.rsplit("/", 1)[-1] in _RUNNERS for name in names):
        return False
    return any(
        isinstance(part, ast.Attribute)
        and part.attr in ("modules", "argv", "orig_argv", "environ", "stack", "_getframe")
        for part in ast.walk(node)
    )


def _assigned_always(statement: ast.stmt) -> bool:
    """`__eq__ = lambda self, other: True` in the body of a class."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Lambda):
        return False
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    wanted = "__ne__" not in names
    return bool(names & _COMPARISONS) and _truth(statement.value.body) is wanted


def _truth(node: ast.expr | None) -> bool | None:
    """Truth of an expression without names; None where it has some."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        decisive = isinstance(node.op, ast.Or)
        truths = [_truth(value) for value in node.values]
        if decisive in truths:
            return decisive
        return None if None in truths else not decisive
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        same = ast.dump(node.left) == ast.dump(node.comparators[0])
        return True if same and isinstance(node.ops[0], (ast.Eq, ast.Is)) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool":
        return _truth(node.args[0]) if node.args else False
    return None


def _always(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a comparison returns True (for `__ne__`: False) whatever it is given."""
    body = [
        s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
    ]
    if len(body) != 1 or not isinstance(body[0], ast.Return) or name == "__bool__":
        return False
    return _truth(body[0].value) is (name != "__ne__")
