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
from harness_adapters.guard.effects.javascript.library import Library
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Ref,
    Unknown,
    Value,
    either,
    is_dark,
    text_of,
)
from harness_adapters.guard.effects.world import World

MAX_TURNS = 64
"""Of a loop over known items."""
_PARSER = Parser(Language(tree_sitter_javascript.language()))
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]+)\}|(.))", re.DOTALL
)
_NAMES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_MODULE = re.compile(
    r"(?:node:)?(fs|fs/promises|child_process|path|os|vm|http|https|net|url|module)"
)
_MARKS = ("JEST_WORKER_ID", "VITEST", "VITEST_WORKER_ID", "NODE_TEST_CONTEXT", "PLAYWRIGHT_TEST")
"""Variables by which code can tell that a test runs it."""
_FRAMES = ("prepareStackTrace", "captureStackTrace")


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


def _source(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            number = int(code, 16)
            return chr(number) if number < 0x110000 and not 0xFDD0 <= number <= 0xFDEF else "?"
        return _NAMES.get(match[4], match[4])

    return _ESCAPE.sub(one, text) if "\\" in text else text


class _Program(Library):
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
            self.env[_source(name)] = value
        elif name.type == "object_pattern":
            for item in name.named_children:
                key = item.child_by_field_name("key")
                target = item.child_by_field_name("value")
                text = _source(key) if key is not None else _source(item)
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
            self.env[_source(node).split("=")[0].strip()] = value

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
            self.env[_source(name)] = ("function", node)
        self.function(node)

    def returned(self, node: Node) -> None:
        """`return value`."""
        value = self.value(node.named_children[0]) if node.named_children else DATA
        if self.returns:
            self.returns[-1].append(value)

    def imported(self, node: Node) -> None:
        """`import x, { y } from 'z'`."""
        source = node.child_by_field_name("source")
        module = self.module(_source(source)[1:-1] if source is not None else "")
        for name in re.findall(r"\bas\s+(\w+)|^import\s+(\w+)", _source(node)):
            self.env[name[0] or name[1]] = module
        braces = re.search(r"\{([^}]*)\}", _source(node))
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

    def value(self, node: Node | None) -> Value:
        """Value of an expression; its effects go into the world."""
        if node is None:
            return DATA
        handler = _EXPRESSIONS.get(node.type)
        if handler is not None:
            return handler(self, node)
        self.walk(node)
        return DATA

    def template(self, node: Node) -> Value:
        """A template string."""
        out = []
        for child in node.named_children:
            if child.type == "template_substitution":
                out.append(text_of(self.value(child.named_children[0])))
            else:
                out.append(_unescaped(_source(child)))
        return "".join(out)

    def number(self, node: Node) -> Value:
        """A number."""
        try:
            return int(_source(node), 0)
        except ValueError:
            return DATA

    def items(self, node: Node) -> Value:
        """An array, or a spread list of arguments."""
        made: list[Value] = []
        for child in node.named_children:
            if child.type == "spread_element":
                inner = self.value(child.named_children[0])
                made += inner if isinstance(inner, list) else [DARK if is_dark(inner) else DATA]
            elif child.type != "comment":
                made.append(self.value(child))
        return made

    def object(self, node: Node) -> Value:
        """An object; computed and spread keys make it unknown."""
        made: dict[str, Value] = {}
        for child in node.named_children:
            if child.type == "pair":
                key, value = child.child_by_field_name("key"), child.child_by_field_name("value")
                name = _source(key).strip("'\"") if key is not None else ""
                if key is not None and key.type == "computed_property_name":
                    name = text_of(self.value(key.named_children[0]))
                made[name] = self.value(value)
            elif child.type == "shorthand_property_identifier":
                made[_source(child)] = self.env.get(_source(child), DATA)
            elif child.type == "spread_element":
                inner = self.value(child.named_children[0])
                made |= inner if isinstance(inner, dict) else {ANY: DARK}
            else:
                self.value(child)
        return made

    def binary(self, node: Node) -> Value:
        """`a + b`; other operators only where they don't matter."""
        left = self.value(node.child_by_field_name("left"))
        right = self.value(node.child_by_field_name("right"))
        operator = node.child_by_field_name("operator")
        sign = _source(operator) if operator is not None else ""
        if sign == "+":
            if isinstance(left, int) and isinstance(right, int):
                return left + right
            return text_of(left) + text_of(right)
        if isinstance(left, int) and isinstance(right, int) and sign in ("-", "^", "*"):
            return {"-": left - right, "^": left ^ right, "*": left * right}[sign]
        if sign in ("||", "&&", "??"):
            return either([left, right])
        return DARK if is_dark(left) or is_dark(right) else DATA

    def ternary(self, node: Node) -> Value:
        """`a ? b : c`."""
        self.value(node.child_by_field_name("condition"))
        ends = ("consequence", "alternative")
        return either([self.value(node.child_by_field_name(end)) for end in ends])

    def assigned(self, node: Node) -> Value:
        """`a = b`, `a += b`."""
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        value = self.value(right)
        if left is None:
            return value
        if node.type == "augmented_assignment_expression":
            value = text_of(self.value(left)) + text_of(value)
        if left.type in ("identifier", "object_pattern", "array_pattern"):
            self.bind(left, value)
        else:
            source = _source(left)
            if source.startswith("process.env"):
                name = source.replace("['", ".").rstrip("']").rsplit(".", 1)[-1]
                self.world.emit(Kind.ENVIRONMENT, f"{name}={text_of(value)}")
            if source.split(".")[-1] in _FRAMES:
                self.world.emit(Kind.HIJACK, "frames")
        return value

    def name(self, node: Node) -> Value:
        """An identifier."""
        text = _source(node)
        return self.env.get(text, Ref(text))

    def member_of(self, node: Node) -> Value:
        """`a.b` and `a[b]`."""
        owner = self.value(node.child_by_field_name("object"))
        name = node.child_by_field_name("property")
        if name is not None:
            return self.member(owner, _source(name))
        index = self.value(node.child_by_field_name("index"))
        if isinstance(owner, list) and isinstance(index, int) and 0 <= index < len(owner):
            return owner[index]
        return self.member(owner, text_of(index))

    def member(self, owner: Value, name: str) -> Value:
        """A member by its name."""
        if isinstance(owner, dict):
            return owner.get(name, ("method", owner, name))
        if isinstance(owner, Ref):
            if not known(name):
                return DARK
            if name in ("constructor", "__proto__", "mainModule", "binding", "getBuiltinModule"):
                return DARK
            if owner.name in ("globalThis", "global", "window"):
                return Ref(name)
            if owner.name == "fs" and name == "promises":
                return owner
            if owner.name in ("process.env",):
                self.world.emit(Kind.ENVIRONMENT, name)
                if self.library and name in _MARKS:
                    self.world.emit(Kind.HIJACK, "detect")
                return {"HOME": self.world.scope.home}.get(name, DATA)
            return Ref(f"{owner.name}.{name}")
        if isinstance(owner, Unknown) and owner.dark:
            return DARK
        if name == "constructor":
            return DARK
        return ("method", owner, name)

    def call(self, node: Node) -> Value:
        """A call, also with `new`."""
        target = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments = node.child_by_field_name("arguments")
        function = self.value(target)
        args = self.value(arguments) if arguments is not None else []
        args = args if isinstance(args, list) else [args]
        return self.applied(function, args)

    def applied(self, function: Value, args: list[Value]) -> Value:
        """A value that is called."""
        if isinstance(function, Ref):
            return self.external(function.name, args)
        if isinstance(function, tuple) and function[0] == "function":
            return self.function(function[1], args)
        if isinstance(function, tuple):
            return self.method(function[1], function[2], args)
        if isinstance(function, Unknown) and function.dark:
            self.world.emit(Kind.UNRESOLVED, "code")
            return DARK
        return DATA


def _string(program: _Program, node: Node) -> Value:
    return _unescaped(_source(node)[1:-1])


def _inner(program: _Program, node: Node) -> Value:
    return program.value(node.named_children[-1]) if node.named_children else DATA


def _function(program: _Program, node: Node) -> Value:
    program.function(node)
    return ("function", node)


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
_EXPRESSIONS: dict[str, Callable[[_Program, Node], Value]] = {
    "string": _string,
    "template_string": _Program.template,
    "number": _Program.number,
    "array": _Program.items,
    "arguments": _Program.items,
    "object": _Program.object,
    "binary_expression": _Program.binary,
    "ternary_expression": _Program.ternary,
    "assignment_expression": _Program.assigned,
    "augmented_assignment_expression": _Program.assigned,
    "identifier": _Program.name,
    "import": _Program.name,
    "member_expression": _Program.member_of,
    "subscript_expression": _Program.member_of,
    "call_expression": _Program.call,
    "new_expression": _Program.call,
    "parenthesized_expression": _inner,
    "await_expression": _inner,
    "sequence_expression": _inner,
    "arrow_function": _function,
    "function_expression": _function,
    "generator_function": _function,
    "regex": lambda program, node: DATA,
}
