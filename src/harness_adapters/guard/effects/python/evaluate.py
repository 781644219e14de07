"""Expressions: worked out where they are made of constants, followed by name where not."""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness_adapters.guard.effects.holes import ANY, OPAQUE, degraded, known
from harness_adapters.guard.effects.python.pure import CONSTANTS, sized
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Alt,
    Function,
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
from harness_adapters.guard.effects.limits import capped, small_product
from harness_adapters.guard.effects.python.joining import join_paths
from harness_adapters.guard.effects.python.members import attribute, item, iterated

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.Pow: operator.pow,
}
_SIGNS: dict[type[ast.AST], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARES: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def value(program: Program, node: ast.expr | None, env: dict[str, Value]) -> Value:
    """Value of an expression; its effects go into the program's world."""
    if node is None:
        return None
    handler = _HANDLERS.get(type(node))
    return handler(program, node, env) if handler else DATA


def _constant(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return node.value


def _name(program: Program, node: Any, env: dict[str, Value]) -> Value:
    try:
        return env[node.id]
    except KeyError:
        if node.id == "__file__":
            return program.name or "<string>"
        if program.stars and not hasattr(builtins, node.id):
            return either([Ref(f"{module}.{node.id}") for module in program.stars])
        return CONSTANTS.get(node.id, Ref(node.id))


def _joined(program: Program, node: Any, env: dict[str, Value]) -> Value:
    made = ""
    for part in node.values:
        made = capped(made + text_of(value(program, part, env)))
    return made


def _formatted(program: Program, node: Any, env: dict[str, Value]) -> Value:
    inner = value(program, node.value, env)
    if node.format_spec is not None:
        spec = text_of(value(program, node.format_spec, env))
        if is_concrete(inner) and known(spec) and len(spec) < 12:
            try:
                return sized(format(inner, spec if not re.search(r"\d{4}", spec) else ""))
            except (ValueError, TypeError):
                return OPAQUE
        return text_of(inner) if not spec.strip("s<>") else degraded(text_of(inner)) or ANY
    if node.conversion == ord("r") and is_concrete(inner):
        return repr(inner)
    return text_of(inner)


def _sequence(program: Program, node: Any, env: dict[str, Value]) -> Value:
    items: list[Value] = []
    for part in node.elts:
        if isinstance(part, ast.Starred):
            items += iterated(program, value(program, part.value, env))
        else:
            items.append(value(program, part, env))
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(program: Program, node: Any, env: dict[str, Value]) -> Value:
    made: dict[Value, Value] = {}
    for key, held in zip(node.keys, node.values, strict=True):
        got = value(program, held, env)
        if key is None:
            if isinstance(got, dict):
                made |= got
            elif got == Ref("os.environ") and len(node.keys) == 1:
                return got
            continue
        name = value(program, key, env)
        made[name if isinstance(name, (str, int, bytes, float)) else text_of(name)] = got
    return made


def binary(left: Value, op: ast.operator, right: Value) -> Value:
    """`left op right`."""
    if isinstance(op, ast.Div) and (isinstance(left, PathValue) or isinstance(right, PathValue)):
        return join_paths(left, right)
    if is_concrete(left) and is_concrete(right):
        try:
            if isinstance(op, (ast.Mult, ast.Pow, ast.LShift)):
                _small(left, right, op)
            padded = isinstance(op, ast.Mod) and isinstance(left, (str, bytes))
            if padded and re.search(r"\d{4}|\*", text_of(left)):
                return DARK
            if padded and not small_product(left, right if hasattr(right, "__len__") else ()):
                return DARK
            return sized(_OPERATORS[type(op)](left, right))
        except Exception:
            return DARK
    if isinstance(op, ast.Add):
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, (str, Unknown, Ref, Alt)) or isinstance(right, str):
            return capped(text_of(left) + text_of(right))
    if isinstance(op, ast.Mod) and isinstance(left, str):
        values = list(right) if isinstance(right, tuple) else [right]
        pieces = re.split(r"%[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]", left)
        if len(pieces) == len(values) + 1:
            texts = [*(text_of(v) for v in values), ""]
            return "".join(a + b for a, b in zip(pieces, texts, strict=True))
    return DARK if is_dark(left) or is_dark(right) else DATA


def _small(left: Value, right: Value, op: ast.operator) -> None:
    numbers = [n for n in (left, right) if isinstance(n, int)]
    if len(numbers) == 2 and not isinstance(op, ast.Mult):
        if abs(right) > 512 or abs(left) > 1 << 64:
            raise ValueError("too large")
    elif len(numbers) == 1:
        other = right if numbers[0] is left else left
        if hasattr(other, "__len__") and numbers[0] * len(other) > 1 << 20:
            raise ValueError("too long")


def _binary(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return binary(value(program, node.left, env), node.op, value(program, node.right, env))


def _boolean(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return either([value(program, part, env) for part in node.values])


def _unary(program: Program, node: Any, env: dict[str, Value]) -> Value:
    inner = value(program, node.operand, env)
    if not is_concrete(inner):
        return DARK if is_dark(inner) else DATA
    try:
        if isinstance(node.op, ast.Not):
            return not inner
        return _SIGNS[type(node.op)](inner)
    except TypeError:
        return DARK


def _compare(program: Program, node: Any, env: dict[str, Value]) -> Value:
    left = value(program, node.left, env)
    result: Value = True
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = value(program, right_node, env)
        if not (is_concrete(left) and is_concrete(right)):
            result = DATA
        elif result is True:
            try:
                result = bool(_COMPARES[type(op)](left, right))
            except TypeError:
                result = DATA
        left = right
    return result


def _conditional(program: Program, node: Any, env: dict[str, Value]) -> Value:
    value(program, node.test, env)
    return either([value(program, node.body, env), value(program, node.orelse, env)])


def _attribute(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return attribute(program, value(program, node.value, env), node.attr)


def _subscript(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return item(program, value(program, node.value, env), value(program, node.slice, env))


def _slice(program: Program, node: Any, env: dict[str, Value]) -> Value:
    parts = [value(program, part, env) for part in (node.lower, node.upper, node.step)]
    if all(part is None or isinstance(part, int) for part in parts):
        return slice(*parts)
    return DATA


def _lambda(program: Program, node: Any, env: dict[str, Value]) -> Value:
    function = Function(node, env)
    program.functions.append(function)
    return function


def _comprehension(program: Program, node: Any, env: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.scope import Scope

    made: list[Value] = []
    pairs: dict[Value, Value] = {}

    def level(depth: int, scope: dict[str, Value]) -> None:
        if len(made) > 4096:
            return
        if depth == len(node.generators):
            if isinstance(node, ast.DictComp):
                key = value(program, node.key, scope)
                pairs[key if isinstance(key, (str, int)) else text_of(key)] = value(
                    program, node.value, scope
                )
            else:
                made.append(value(program, node.elt, scope))
            return
        generator = node.generators[depth]
        for each in iterated(program, value(program, generator.iter, scope))[:4096]:
            program.world.step()
            inner = Scope({}, scope)
            program.assign(generator.target, each, inner)
            if all(
                not is_concrete(test) or test
                for test in [value(program, condition, inner) for condition in generator.ifs]
            ):
                level(depth + 1, inner)

    level(0, env)
    return pairs if isinstance(node, ast.DictComp) else made


def _call(program: Program, node: Any, env: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.calls import call

    function = value(program, node.func, env)
    args: list[Value] = []
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            args += iterated(program, value(program, argument.value, env))
        else:
            args.append(value(program, argument, env))
    kwargs: dict[str, Value] = {}
    for keyword in node.keywords:
        got = value(program, keyword.value, env)
        if keyword.arg is not None:
            kwargs[keyword.arg] = got
        elif isinstance(got, dict):
            kwargs |= {str(k): v for k, v in got.items()}
    if isinstance(function, Ref) and function.name in ("globals", "locals", "vars") and not args:
        return Ref("builtins.__dict__") if function.name != "globals" else _Globals(program).view()
    return call(program, function, args, kwargs)


class _Globals:
    def __init__(self, program: Program) -> None:
        self.program = program

    def view(self) -> Value:
        return {"__builtins__": Ref("builtins"), **self.program.globals}


def _inner(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return value(program, node.value, env)


def _named(program: Program, node: Any, env: dict[str, Value]) -> Value:
    got = value(program, node.value, env)
    program.assign(node.target, got, env)
    return got


_HANDLERS: dict[type[ast.AST], Callable[[Program, Any, dict[str, Value]], Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.JoinedStr: _joined,
    ast.FormattedValue: _formatted,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _sequence,
    ast.Dict: _dict,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Lambda: _lambda,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Call: _call,
    ast.Await: _inner,
    ast.Yield: _inner,
    ast.YieldFrom: _inner,
    ast.Starred: _inner,
    ast.NamedExpr: _named,
}
