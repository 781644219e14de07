"""Expressions: worked out where they are made of constants, followed by name where not."""

from __future__ import annotations

import ast
import builtins
import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness_adapters.guard.effects.holes import ANY, EITHER, OPAQUE, choices, degraded, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.pure import CONSTANTS, sized
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
_REACH = frozenset(
    {
        *("__globals__", "__subclasses__", "__builtins__", "__bases__", "__base__", "__mro__"),
        *("__getattribute__", "__code__", "__loader__", "__spec__", "__closure__", "mro"),
        *("func_globals", "gi_frame", "cr_frame", "__reduce__", "__init_subclass__"),
    }
)
_BUILTIN_MODULES = ("builtins", "__builtins__", "__builtin__")


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
    return "".join(text_of(value(program, part, env)) for part in node.values)


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
    for item in node.elts:
        if isinstance(item, ast.Starred):
            items += iterated(program, value(program, item.value, env))
        else:
            items.append(value(program, item, env))
    return tuple(items) if isinstance(node, ast.Tuple) else items


def _dict(program: Program, node: Any, env: dict[str, Value]) -> Value:
    made: dict[Value, Value] = {}
    for key, item in zip(node.keys, node.values, strict=True):
        got = value(program, item, env)
        if key is None:
            if isinstance(got, dict):
                made |= got
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
            if isinstance(op, ast.Mod) and isinstance(left, (str, bytes)):
                if re.search(r"[\d*]{4}", text_of(left)):
                    return DARK
            return sized(_OPERATORS[type(op)](left, right))
        except Exception:
            return DARK
    if isinstance(op, ast.Add):
        if isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(left, (str, Unknown, Ref, Alt)) or isinstance(right, str):
            return text_of(left) + text_of(right)
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


def join_paths(*parts: Value) -> PathValue:
    """Paths joined as pathlib and os.path.join do: an absolute one starts anew."""
    made = ""
    for part in parts:
        text = text_of(part)
        if EITHER in text or EITHER in made:
            return PathValue(
                text_of(either([_joined_text(a, b) for a in choices(made) for b in choices(text)]))
            )
        made = _joined_text(made, text)
    return PathValue(made)


def _joined_text(made: str, text: str) -> str:
    if text.startswith("/") or not made:
        return text
    return made.rstrip("/") + "/" + text


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
        return {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}[
            type(node.op)
        ](inner)
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
    if owner.name in _BUILTIN_MODULES:
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
    if full.startswith("posix.") or full.startswith("nt."):
        return Ref("os." + name)
    if full.startswith("io.") or full.startswith("_io."):
        return Ref("open") if name == "open" else Ref(full)
    return Ref(full)


def _instance_attribute(program: Program, owner: Instance, name: str) -> Value:
    seen: list[Instance] = [owner]
    while seen:
        place = seen.pop(0)
        if name in place.attributes:
            found = place.attributes[name]
            if isinstance(found, Function) and owner.cls is not None:
                return Function(found.node, found.env, owner)
            return found
        if place.cls is not None:
            seen.append(place.cls)
        for base in place.bases:
            if isinstance(base, Instance):
                seen.append(base)
            elif isinstance(base, Ref):
                return Ref(f"{base.name}.{name}")
    return DATA


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


def _subscript(program: Program, node: Any, env: dict[str, Value]) -> Value:
    return item(program, value(program, node.value, env), value(program, node.slice, env))


def item(program: Program, owner: Value, key: Value) -> Value:
    """`owner[key]`."""
    if isinstance(owner, Ref):
        return _item_of_module(program, owner, key)
    if isinstance(owner, (str, bytes, list, tuple, dict)):
        if isinstance(owner, (list, tuple, dict)) or is_concrete(owner):
            try:
                if isinstance(key, (int, slice, str, bytes, float)) or key is None:
                    return owner[key]
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
        return {"HOME": program.world.scope.home, "PWD": program.world.cwd}.get(
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
    from harness_adapters.guard.effects.python.interpret import _Scope

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
            inner = _Scope({}, scope)
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


def set_attribute(program: Program, owner: Value, name: str, new: Value) -> None:
    """`owner.name = new`: on a module of a test runner this bends the tests."""
    if not isinstance(owner, Ref):
        return
    full = f"{owner.name}.{name}"
    if full.split(".")[0] in ("pytest", "_pytest", "unittest", "builtins", "doctest", "time") or full.startswith(("numpy.testing", "np.testing", "pandas.testing", "math.", "os._exit")):
        program.world.emit(Kind.HIJACK, "patch")
    elif full == "sys.path":
        extend_path(program, new)


def set_item(program: Program, owner: Value, key: Value, new: Value) -> None:
    """`owner[key] = new`."""
    if isinstance(owner, Ref) and owner.name == "os.environ":
        program.world.emit(Kind.ENVIRONMENT, f"{text_of(key)}={text_of(new)}")
    elif isinstance(owner, Ref) and owner.name == "sys.modules":
        if text_of(key).split(".")[0] in ("pytest", "_pytest", "unittest"):
            program.world.emit(Kind.HIJACK, "patch")
    elif (isinstance(owner, dict) and isinstance(key, (str, int, bytes, float))) or (isinstance(owner, list) and isinstance(key, int) and -len(owner) <= key < len(owner)):
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
