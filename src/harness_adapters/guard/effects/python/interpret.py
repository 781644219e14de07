"""Runs a Python program on paper: every branch, effects instead of acts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python import evaluate, members
from harness_adapters.guard.effects.python.hijack import look_for_hijacks
from harness_adapters.guard.effects.python.scope import Scope
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Function,
    Instance,
    Ref,
    Value,
    either,
    is_concrete,
    is_dark,
)
from harness_adapters.guard.effects.world import World

MAX_LOOP_NODES = 6000
"""Nodes of a loop's body times its turns; beyond them the turns are run as one."""
MAX_RECURSION = 3
MAX_TURNS = 300
"""Of a loop over known values or with a known condition; then its variables are opaque."""


class Program:
    """One program: its variables, its output, and the world that it acts on."""

    def __init__(self, world: World, argv: Sequence[str], stdin: str, name: str) -> None:
        self.world = world
        self.argv = list(argv)
        self.stdin = stdin
        self.name = name
        self.globals: dict[str, Value] = {}
        self.out: list[str] = []
        self.called: set[int] = set()
        self.functions: list[Function] = []
        self.returns: list[list[Value]] = []
        self.active: dict[int, int] = {}
        """Calls of each function that are under way."""
        self.stars: list[str] = []
        """Modules all of whose names are imported."""
        self.raised: list[Value] = []
        """Texts of the exceptions that it raises."""
        self.path: list[str] = []
        """Directories that the program adds to sys.path."""

    # Blocks

    def run(self, tree: ast.Module) -> None:
        """All statements, then what was defined and never called, with unknown arguments."""
        self.block(tree.body, self.globals)
        for function in list(self.functions):
            if id(function.node) not in self.called:
                self.call(function, [], {}, unknown=True)

    def block(self, body: Sequence[ast.stmt], env: dict[str, Value]) -> None:
        """Run statements one after the other."""
        for statement in body:
            self.world.step()
            handler = _STATEMENTS.get(type(statement))
            if handler is None:
                self._any(statement, env)
            else:
                handler(self, statement, env)

    def _any(self, statement: ast.stmt, env: dict[str, Value]) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.value(child, env)

    def value(self, node: ast.expr | None, env: dict[str, Value]) -> Value:
        """Value of an expression."""
        return evaluate.value(self, node, env)

    # Functions

    def call(
        self,
        function: Function,
        args: list[Value],
        kwargs: dict[str, Value],
        *,
        unknown: bool = False,
    ) -> Value:
        """Run a function of the program; returns whatever it may return."""
        node = function.node
        depth = self.active.get(id(node), 0)
        if depth > MAX_RECURSION or not self.world.enter():
            return DARK
        if depth == MAX_RECURSION:
            # Once more, with values that stand for those of all further calls.
            args, kwargs = [DARK for _ in args], dict.fromkeys(kwargs, DARK)
        self.active[id(node)] = depth + 1
        self.called.add(id(node))
        env = dict(function.env) if function.env is not self.globals else {}
        scope = Scope(env, self.globals)
        spec = node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        if function.owner is not None:
            args = [function.owner, *args]
        defaults: list[ast.expr | None] = [None] * (len(names) - len(spec.defaults))
        for name, default in zip(names, [*defaults, *spec.defaults], strict=False):
            scope[name] = (
                self.value(default, self.globals) if default is not None and not unknown else DATA
            )
        for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=False):
            scope[arg.arg] = DATA if default is None else self.value(default, self.globals)
        for name, value in zip(names, args, strict=False):
            scope[name] = value
        if spec.vararg:
            scope[spec.vararg.arg] = DATA if unknown else list(args[len(names) :])
        if spec.kwarg:
            scope[spec.kwarg.arg] = DATA if unknown else dict(kwargs)
        scope.update(kwargs)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body, scope)
            self.returns.append([])
            self.block(node.body, scope)
            return either(self.returns.pop() or [None])
        finally:
            self.active[id(node)] = depth
            self.world.leave()

    def define(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`def`."""
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        function = Function(node, env)
        self.functions.append(function)
        for decorator in node.decorator_list:
            self.value(decorator, env)
        env[node.name] = function

    def klass(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`class`: its methods are called with unknown arguments if nothing else calls them."""
        assert isinstance(node, ast.ClassDef)
        made = Instance(bases=tuple(self.value(base, env) for base in node.bases))
        scope = Scope(made.attributes, env)
        for statement in node.body:
            # Fields in their order, those without a value too.
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                scope[statement.target.id] = DATA
        self.block(node.body, scope)
        env[node.name] = made

    def returned(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`return`; both it and what follows are run."""
        assert isinstance(node, ast.Return)
        value = self.value(node.value, env)
        if self.returns:
            self.returns[-1].append(value)

    # Bindings

    def assign(self, target: ast.expr, value: Value, env: dict[str, Value]) -> None:
        """Bind a target."""
        if isinstance(target, ast.Name):
            env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            items = value if isinstance(value, (list, tuple)) else None
            for place, item in enumerate(target.elts):
                inner = item.value if isinstance(item, ast.Starred) else item
                got: Value = DARK if is_dark(value) else DATA
                if items is not None and place < len(items) and not isinstance(item, ast.Starred):
                    got = items[place]
                elif isinstance(value, str) and known(value) and place < len(value):
                    got = value[place]
                self.assign(inner, got, env)
        elif isinstance(target, ast.Attribute):
            owner = self.value(target.value, env)
            if isinstance(owner, Instance):
                owner.attributes[target.attr] = value
            members.set_attribute(self, owner, target.attr, value)
        elif isinstance(target, ast.Subscript):
            owner, key = self.value(target.value, env), self.value(target.slice, env)
            members.set_item(self, owner, key, value)

    def assignment(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`a = b`, `a: T = b`, `a += b`."""
        if isinstance(node, ast.Assign):
            value = self.value(node.value, env)
            for target in node.targets:
                self.assign(target, value, env)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self.assign(node.target, self.value(node.value, env), env)
        elif isinstance(node, ast.AugAssign):
            made = evaluate.binary(
                self.value(node.target, env), node.op, self.value(node.value, env)
            )
            owner = node.target
            if isinstance(owner, ast.Name) and env.get(owner.id) == Ref("sys.path"):
                members.extend_path(self, self.value(node.value, env))
                return
            self.assign(owner, made, env)

    def imported(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`import`: a module of the session's own is run."""
        if isinstance(node, ast.Import):
            for alias in node.names:
                members.import_module(self, alias.name)
                name = alias.asname or alias.name.split(".")[0]
                env[name] = Ref(alias.name if alias.asname else name)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            found = members.import_module(self, module)
            for alias in node.names:
                name = alias.asname or alias.name
                if name == "*":
                    self.stars.append(module)
                    env.update(found or {})
                    continue
                full = f"{module}.{alias.name}" if module else alias.name
                if found and alias.name in found:
                    env[name] = found[alias.name]
                elif module in ("builtins",):
                    env[name] = Ref(alias.name)
                else:
                    env[name] = Ref(_ALIASES.get(full, full))

    # Control

    def branches(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`if` and `match`: every branch; afterwards a variable may have any of the values."""
        if isinstance(node, ast.If):
            self.value(node.test, env)
            bodies = [node.body, node.orelse]
        else:
            assert isinstance(node, ast.Match)
            self.value(node.subject, env)
            bodies = [case.body for case in node.cases]
        start = dict(env)
        ends: list[dict[str, Value]] = []
        for body in bodies:
            for name in set(env) - set(start):
                del env[name]
            env.update(start)
            self.block(body, env)
            ends.append(dict(env))
        for name in {name for end in ends for name in end}:
            env[name] = either([end[name] for end in ends if name in end])

    def loop(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`for` over each known value, else once over an unknown one."""
        assert isinstance(node, (ast.For, ast.AsyncFor))
        items = members.iterated(self, self.value(node.iter, env))
        size = sum(1 for _ in ast.walk(node))
        if size * len(items) > MAX_LOOP_NODES:
            # All turns at once: the variable may be any of the items, the others anything.
            for _ in range(2):
                self.assign(node.target, either(items), env)
                self.block(node.body, env)
                self._widen(node, env)
            self.block(node.orelse, env)
            return
        for item in items[:MAX_TURNS]:
            self.assign(node.target, item, env)
            self.block(node.body, env)
        if len(items) > MAX_TURNS:
            self._widen(node, env)
            self.assign(node.target, DATA, env)
            self.block(node.body, env)
        self.block(node.orelse, env)

    def repeat(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`while`: as long as its condition is known to hold, else twice and widened."""
        assert isinstance(node, ast.While)
        for turn in range(MAX_TURNS):
            test = self.value(node.test, env)
            if is_concrete(test) and not test:
                return
            self.block(node.body, env)
            endless = isinstance(node.test, ast.Constant)
            if turn and (endless or not is_concrete(test)):
                break
        self._widen(node, env)
        self.block(node.body, env)
        self.block(node.orelse, env)

    def _widen(self, node: ast.stmt, env: dict[str, Value]) -> None:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id in env:
                value = env[inner.id]
                if isinstance(value, (int, float, str, bytes, list)):
                    env[inner.id] = DARK if is_concrete(value) else DATA

    def thrown(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`raise`: a text of the exception may come back where it is caught."""
        assert isinstance(node, ast.Raise)
        self.value(node.exc, env)
        for argument in node.exc.args if isinstance(node.exc, ast.Call) else []:
            text = self.value(argument, env)
            if isinstance(text, str) and len(self.raised) < 64:
                self.raised.append(text)

    def attempt(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`try`: everything in it."""
        assert isinstance(node, (ast.Try, ast.TryStar))
        self.block(node.body, env)
        for handler in node.handlers:
            if handler.name:
                env[handler.name] = either(self.raised) if self.raised else DATA
            self.block(handler.body, env)
        self.block(node.orelse, env)
        self.block(node.finalbody, env)

    def within(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`with`."""
        assert isinstance(node, (ast.With, ast.AsyncWith))
        cwd = self.world.cwd
        for item in node.items:
            value = self.value(item.context_expr, env)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, env)
        self.block(node.body, env)
        self.world.cwd = cwd if "chdir" in ast.dump(node.items[0].context_expr) else self.world.cwd

    def deleted(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`del`."""
        assert isinstance(node, ast.Delete)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.value(target.value, env)

    def nothing(self, node: ast.stmt, env: dict[str, Value]) -> None:
        """`pass`, `global` and the like."""

    def output(self) -> str:
        """What the program printed."""
        return "".join(self.out)


_ALIASES = {"pathlib.PosixPath": "pathlib.Path", "pathlib.PurePath": "pathlib.Path"}
_STATEMENTS: dict[type[ast.stmt], Callable[[Program, ast.stmt, dict[str, Value]], None]] = {
    ast.FunctionDef: Program.define,
    ast.AsyncFunctionDef: Program.define,
    ast.ClassDef: Program.klass,
    ast.Return: Program.returned,
    ast.Assign: Program.assignment,
    ast.AnnAssign: Program.assignment,
    ast.AugAssign: Program.assignment,
    ast.Import: Program.imported,
    ast.ImportFrom: Program.imported,
    ast.If: Program.branches,
    ast.Match: Program.branches,
    ast.For: Program.loop,
    ast.AsyncFor: Program.loop,
    ast.While: Program.repeat,
    ast.Raise: Program.thrown,
    ast.Try: Program.attempt,
    ast.TryStar: Program.attempt,
    ast.With: Program.within,
    ast.AsyncWith: Program.within,
    ast.Delete: Program.deleted,
    ast.Pass: Program.nothing,
    ast.Global: Program.nothing,
    ast.Nonlocal: Program.nothing,
}


def run_tree(
    world: World, tree: ast.Module, *, argv: Sequence[str], stdin: str, name: str, library: bool
) -> str:
    """Run a parsed program; returns what it prints."""
    if not world.enter():
        return ANY
    cwd = world.cwd
    program = Program(world, argv, stdin, name)
    try:
        look_for_hijacks(world, tree, library=library)
        program.run(tree)
    except RecursionError:
        world.emit(Kind.UNRESOLVED, "budget")
    finally:
        world.cwd = cwd
        world.leave()
    return program.output()
