"""Contracts by rule: Python modules with their signatures and documentation, and no bodies."""

from __future__ import annotations

import ast

_RAISE = "raise NotImplementedError"


def stub_module(source: str) -> str | None:
    """The module's public face; None where it can't be parsed or has none."""
    tree = _parse(source)
    if tree is None:
        return None
    tree.body = [kept for node in tree.body if (kept := _face(node)) is not None]
    if not any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in tree.body
    ):
        return None
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def with_stubs(old: str, new: str) -> str:
    """The old module with stubs for public functions, classes and methods that only `new` has."""
    before, after = _parse(old), _parse(new)
    if before is None or after is None:
        return old
    have = {_name(node) for node in before.body}
    added = [
        kept
        for node in after.body
        if (name := _name(node)) and name not in have and (kept := _face(node)) is not None
    ]
    text = old.rstrip("\n") + "\n"
    for node in added:
        gap = "\n\n" if not isinstance(node, ast.Assign | ast.AnnAssign) else ""
        text += f"{gap}{ast.unparse(ast.fix_missing_locations(node))}\n"
    return text if added else old


def imported_names(source: str) -> dict[str, set[str]]:
    """What a module imports: dotted name of the module -> names taken from it."""
    tree = _parse(source)
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.setdefault(alias.name, set())
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.setdefault(node.module, set()).update(alias.name for alias in node.names)
    return found


def _parse(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _name(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def _face(node: ast.stmt) -> ast.stmt | None:
    match node:
        case ast.Import() | ast.ImportFrom():
            return node
        case ast.Expr(value=ast.Constant(value=str())):
            return node
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if node.name.startswith("_") and not node.name.startswith("__"):
                return None
            node.body = [*_documentation(node), *ast.parse(_RAISE).body]
            return node
        case ast.ClassDef():
            if node.name.startswith("_"):
                return None
            body = [kept for inner in node.body if (kept := _member(inner)) is not None]
            node.body = body or [ast.Pass()]
            return node
        case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
            return ast.Assign(targets=node.targets, value=ast.Constant(...), lineno=node.lineno)
    return None


def _member(node: ast.stmt) -> ast.stmt | None:
    """Part of a class: fields and names stay, methods lose their bodies."""
    if isinstance(node, ast.AnnAssign | ast.Pass):
        return node
    if isinstance(node, ast.Assign):
        return node
    return _face(node)


def _documentation(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
    first = node.body[0] if node.body else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return [first] if isinstance(first.value.value, str) else []
    return []
