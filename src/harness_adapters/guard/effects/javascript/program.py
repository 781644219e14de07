"""JavaScript: `node -e`, scripts, and code tools, by tree-sitter.

Simpler than Python's: one scope, every function's body once with unknown arguments, constants
worked out. A call of something that was computed is unresolved.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.javascript.expressions import Expressions, source_of
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Ref,
    Value,
    either,
    is_dark,
)
from harness_adapters.guard.effects.world import World

MAX_TURNS = 64
"""Of a loop over known items."""
_PARSER = Parser(Language(tree_sitter_javascript.language()))
_MODULE = re.compile(
    r"(?:node:)?(fs|fs/promises|child_process|path|os|vm|http|https|net|url|module)"
)


def run_javascript(world: World, text: str, *, library: bool = False) -> str:
    """Effects of a program; one that doesn't parse is unresolved, unless it is a `library`.

    Returns what it would print.
    """
    if not known(text):
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    text = re.sub(r"^#!.*", "", text)
    root = _PARSER.parse(f"async function* main() {{\n{text}\n}}".encode()).root_node
    if root.has_error:
        root = _PARSER.parse(text.encode()).root_node
    if root.has_error and not library:
        world.emit(Kind.UNRESOLVED, "syntax")
    if not world.enter():
        return ANY
    program = _Program(world, library=library)
    try:
        program.walk(root)
        return "".join(program.out) or ANY
    except RecursionError:
        world.emit(Kind.UNRESOLVED, "budget")
        return ANY
    finally:
        world.leave()


def printing(text: str) -> str:
    """The program that `node -p` makes of an expression; of statements, these themselves."""
    shown = "console.log((\n" + text.strip().rstrip(";") + "\n))"
    root = _PARSER.parse(f"async function* main() {{\n{shown}\n}}".encode()).root_node
    return text if root.has_error else shown


class _Program(Expressions):
    def __init__(self, world: World, *, library: bool) -> None:
        self.library = library
        self.world = world
        self.out = []
        self.env: dict[str, Value] = {}
        self.returns: list[list[Value]] = []
        self.active: dict[int, int] = {}
        """Calls of each function that are under way."""

    def walk(self, node: Node) -> None:
        """Evaluate every statement below a node."""
        for child in node.named_children:
            self.world.step()
            if child.type in _STATEMENTS:
                _STATEMENTS[child.type](self, child)
            elif child.type.endswith(
                ("_statement", "_declaration", "_block", "clause", "body")
            ) or child.type in ("program", "export_statement", "switch_case", "class_body"):
                self.walk(child)
            elif child.type not in ("comment", "formal_parameters", "property_identifier"):
                self.value(child)

    def run_text(self, text: str) -> None:
        """See Library."""
        run_javascript(self.world, text)

    def declare(self, node: Node) -> None:
        """`const name = value`, with patterns."""
        for child in node.named_children:
            if child.type != "variable_declarator":
                continue
            name, value = child.child_by_field_name("name"), child.child_by_field_name("value")
            got = self.value(value) if value is not None else DATA
            if name is not None:
                self.bind(name, got)

    def loop(self, node: Node) -> None:
        """`for (const x of xs)`, over each known item."""
        left, body = node.child_by_field_name("left"), node.child_by_field_name("body")
        right = self.value(node.child_by_field_name("right"))
        items = right if isinstance(right, list) and right else [DARK if is_dark(right) else DATA]
        for item in items[:MAX_TURNS]:
            if left is not None:
                self.bind_name(left, item)
            if body is not None:
                self.walk_one(body)

    def walk_one(self, node: Node) -> None:
        """A block, or a statement alone."""
        if node.type == "expression_statement":
            self.value(node.named_children[0])
        else:
            self.walk(node)

    def each(self, function: Value, items: list[Value]) -> list[Value]:
        """See Library."""
        if not isinstance(function, tuple) or function[0] != "function":
            return [self.applied(function, [item]) for item in items[:MAX_TURNS]]
        return [self.function(function[1], [item]) for item in items[:MAX_TURNS]]

    def bind(self, name: Node, value: Value) -> None:
        """Bind an identifier, or the names of a pattern."""
        if name.type == "identifier":
            self.env[source_of(name)] = value
        elif name.type == "object_pattern":
            for item in name.named_children:
                key = item.child_by_field_name("key")
                target = item.child_by_field_name("value")
                text = source_of(key) if key is not None else source_of(item)
                self.bind_name(target if target is not None else item, self.member(value, text))
        elif name.type == "array_pattern":
            for place, item in enumerate(name.named_children):
                ready = isinstance(value, list) and place < len(value)
                self.bind_name(item, value[place] if ready else DARK if is_dark(value) else DATA)

    def bind_name(self, node: Node, value: Value) -> None:
        """Bind whatever kind of name a pattern holds."""
        if node.type in ("object_pattern", "array_pattern"):
            self.bind(node, value)
        else:
            self.env[source_of(node).split("=")[0].strip()] = value

    def function(self, node: Node, args: list[Value] | None = None) -> Value:
        """A function's body: with unknown arguments where it is defined, and with known ones where
        it is called. Returns what it may return.
        """
        body = node.child_by_field_name("body")
        depth = self.active.get(node.id, 0)
        if body is None or depth > 2 or not self.world.enter():
            return DARK
        if depth == 2 and args is not None:
            args = [DARK for _ in args]
        self.active[node.id] = depth + 1
        names = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        places = [] if names is None else names.named_children or [names]
        for at, name in enumerate(places):
            self.bind_name(name, args[at] if args is not None and at < len(args) else DATA)
        self.returns.append([])
        try:
            if body.type != "statement_block":
                return self.value(body)
            self.walk(body)
            return either(self.returns[-1] or [DATA])
        finally:
            self.active[node.id] = depth
            self.returns.pop()
            self.world.leave()

    def defined(self, node: Node) -> None:
        """`function name() { … }`."""
        name = node.child_by_field_name("name")
        if name is not None:
            self.env[source_of(name)] = ("function", node)
        self.function(node)

    def returned(self, node: Node) -> None:
        """`return value`."""
        value = self.value(node.named_children[0]) if node.named_children else DATA
        if self.returns:
            self.returns[-1].append(value)

    def imported(self, node: Node) -> None:
        """`import x, { y } from 'z'`."""
        source = node.child_by_field_name("source")
        module = self.module(source_of(source)[1:-1] if source is not None else "")
        for name in re.findall(r"\bas\s+(\w+)|^import\s+(\w+)", source_of(node)):
            self.env[name[0] or name[1]] = module
        braces = re.search(r"\{([^}]*)\}", source_of(node))
        for part in braces[1].split(",") if braces else []:
            original, _, alias = part.strip().partition(" as ")
            if original:
                self.env[alias.strip() or original] = self.member(module, original.strip())

    def module(self, name: str) -> Value:
        """A module by its name; a file is run."""
        match = _MODULE.fullmatch(name)
        if match:
            return Ref("fs" if match[1] == "fs/promises" else match[1])
        if name[:1] in "./~":
            self.world.emit(Kind.READ, self.world.path(name))
            self.world.emit(Kind.EXECUTE, self.world.path(name))
        return Ref("module:" + name) if known(name) else DARK

    # Expressions


_STATEMENTS: dict[str, Callable[[_Program, Node], Any]] = {
    "lexical_declaration": _Program.declare,
    "variable_declaration": _Program.declare,
    "import_statement": _Program.imported,
    "function_declaration": _Program.defined,
    "generator_function_declaration": _Program.defined,
    "return_statement": _Program.returned,
    "for_in_statement": _Program.loop,
    "method_definition": _Program.function,
}
