"""Contracts by rule: Python modules with their signatures and documentation, and no bodies."""

from __future__ import annotations

import ast
import textwrap

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
    have = {_name(node): node for node in before.body}
    lines = old.rstrip("\n").split("\n")
    added: list[tuple[int, str]] = []
    for node in after.body:
        known = have.get(_name(node))
        if isinstance(node, ast.ClassDef) and isinstance(known, ast.ClassDef):
            added += [(known.end_lineno or 0, text) for text in _new_methods(known, node)]
        elif _name(node) and known is None and (kept := _face(node)) is not None:
            gap = "" if isinstance(node, ast.Assign | ast.AnnAssign) else "\n\n"
            added.append((len(lines), gap + _unparsed(kept)))
    for line, text in reversed(added):
        lines[line:line] = text.split("\n")
    return "\n".join(lines) + "\n" if added else old


def _new_methods(old: ast.ClassDef, new: ast.ClassDef) -> list[str]:
    have = {_name(node) for node in old.body}
    return [
        "\n" + textwrap.indent(_unparsed(kept), "    ")
        for node in new.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name not in have
        and (kept := _face(node)) is not None
    ]


def _unparsed(node: ast.stmt) -> str:
    return ast.unparse(ast.fix_missing_locations(node))


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
