"""Faults put into Python, one at a time, on given lines (mutation operators after Offutt et al.).

Texts of messages, documentation and annotations are left alone: no test should look at them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Set
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip
_UNSEEN_ARGUMENTS = {"help", "description", "epilog", "prog", "metavar"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault."""

    line: int
    what: str
    source: str


def mutants(source: str, lines: Set[int]) -> Iterator[Mutant]:
    """Every mutant of a module on these lines (from 1). Raises SyntaxError for broken source."""
    tree = ast.parse(source)
    untouched = _untouched(tree)
    places = [
        (number, node)
        for number, node in enumerate(ast.walk(tree))
        if getattr(node, "lineno", 0) in lines and id(node) not in untouched
    ]
    original = ast.dump(tree)
    for number, node in places:
        what = _name(node)
        if not what:
            continue
        changed = copy.deepcopy(tree)
        _apply(changed, number)
        if ast.dump(changed) != original:
            text = ast.unparse(ast.fix_missing_locations(changed)) + "\n"
            yield Mutant(getattr(node, "lineno", 0), what, text)


def _untouched(tree: ast.Module) -> set[int]:
    """Nodes that say something to people or type checkers only, and the main guard."""
    found: set[int] = set()

    def leave(node: ast.AST | None) -> None:
        if node is not None:
            found.update(id(each) for each in ast.walk(node))

    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            leave(node)
            found.discard(id(node))  # the statement itself may go
        elif isinstance(node, ast.Assert):
            leave(node.msg)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            leave(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            leave(node.returns)
        elif isinstance(node, ast.keyword) and node.arg in _UNSEEN_ARGUMENTS:
            leave(node.value)
        elif isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            leave(node.test)
            found.add(id(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            leave(node)
    return found


def _name(node: ast.AST) -> str:
    """What is done to a node; empty for one that is left alone."""
    match node:
        case ast.Compare():
            return "a comparison changed"
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _OPERATIONS:
            return "an operation changed"
        case ast.BoolOp():
            return "and / or swapped"
        case ast.UnaryOp(op=ast.Not()):
            return "a not removed"
        case ast.Constant(value=bool() | int() | float()):
            return "a number changed"
        case ast.Constant(value=str()):
            return "a text changed"
        case ast.If() | ast.While() | ast.IfExp():
            return "a condition negated"
        case ast.Return(value=ast.expr()):
            return "a result replaced by None"
        case ast.Assign() | ast.Expr() | ast.Raise() | ast.Continue() | ast.Break():
            return "a statement removed"
    return ""


def _apply(tree: ast.Module, number: int) -> None:
    """Change the node at this place of `ast.walk`, in place."""
    node = next(each for position, each in enumerate(ast.walk(tree)) if position == number)
    match node:
        case ast.Compare():
            node.ops[0] = _COMPARISONS[type(node.ops[0])]()
        case ast.BinOp() | ast.AugAssign():
            node.op = _OPERATIONS[type(node.op)]()
        case ast.BoolOp():
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.UnaryOp():
            _replace(tree, node, node.operand)
        case ast.Constant(value=bool()):
            node.value = not node.value
        case ast.Constant(value=int() | float() as value):
            node.value = value + 1
        case ast.Constant(value=str(text)):
            node.value = f"{text}_"
        case ast.If() | ast.While() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.Return():
            node.value = ast.Constant(None)
        case _:
            _replace(tree, node, ast.Pass())


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(each is old for each in value):
                value[:] = [new if each is old else each for each in value]
                return
