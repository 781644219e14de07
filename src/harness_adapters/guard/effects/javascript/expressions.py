"""Expressions of JavaScript: their values, with their effects in the world."""

from __future__ import annotations

import re
from collections.abc import Callable

from tree_sitter import Node

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

_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]+)\}|(.))", re.DOTALL
)
_NAMES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_MARKS = ("JEST_WORKER_ID", "VITEST", "VITEST_WORKER_ID", "NODE_TEST_CONTEXT", "PLAYWRIGHT_TEST")
"""Variables by which code can tell that a test runs it."""
_FRAMES = ("prepareStackTrace", "captureStackTrace")


def source_of(node: Node) -> str:
    """The text of a node."""
    return (node.text or b"").decode(errors="replace")


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            number = int(code, 16)
            return chr(number) if number < 0x110000 and not 0xFDD0 <= number <= 0xFDEF else "?"
        return _NAMES.get(match[4], match[4])

    return _ESCAPE.sub(one, text) if "\\" in text else text


class Expressions(Library):
    """Works out expressions; statements are the program's."""

    env: dict[str, Value]
    library: bool

    def walk(self, node: Node) -> None:
        """Evaluate every statement below a node."""
        raise NotImplementedError

    def bind(self, name: Node, value: Value) -> None:
        """Give names of a pattern their values."""
        raise NotImplementedError

    def function(self, node: Node, args: list[Value] | None = None) -> Value:
        """Run a function's body."""
        raise NotImplementedError

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
                out.append(_unescaped(source_of(child)))
        return "".join(out)

    def number(self, node: Node) -> Value:
        """A number."""
        try:
            return int(source_of(node), 0)
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
                name = source_of(key).strip("'\"") if key is not None else ""
                if key is not None and key.type == "computed_property_name":
                    name = text_of(self.value(key.named_children[0]))
                made[name] = self.value(value)
            elif child.type == "shorthand_property_identifier":
                made[source_of(child)] = self.env.get(source_of(child), DATA)
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
        sign = source_of(operator) if operator is not None else ""
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
            source = source_of(left)
            if source.startswith("process.env"):
                name = source.replace("['", ".").rstrip("']").rsplit(".", 1)[-1]
                self.world.emit(Kind.ENVIRONMENT, f"{name}={text_of(value)}")
            if source.split(".")[-1] in _FRAMES:
                self.world.emit(Kind.HIJACK, "frames")
        return value

    def name(self, node: Node) -> Value:
        """An identifier."""
        text = source_of(node)
        return self.env.get(text, Ref(text))

    def member_of(self, node: Node) -> Value:
        """`a.b` and `a[b]`."""
        owner = self.value(node.child_by_field_name("object"))
        name = node.child_by_field_name("property")
        if name is not None:
            return self.member(owner, source_of(name))
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


def _string(program: Expressions, node: Node) -> Value:
    return _unescaped(source_of(node)[1:-1])


def _inner(program: Expressions, node: Node) -> Value:
    return program.value(node.named_children[-1]) if node.named_children else DATA


def _function(program: Expressions, node: Node) -> Value:
    program.function(node)
    return ("function", node)


_EXPRESSIONS: dict[str, Callable[[Expressions, Node], Value]] = {
    "string": _string,
    "template_string": Expressions.template,
    "number": Expressions.number,
    "array": Expressions.items,
    "arguments": Expressions.items,
    "object": Expressions.object,
    "binary_expression": Expressions.binary,
    "ternary_expression": Expressions.ternary,
    "assignment_expression": Expressions.assigned,
    "augmented_assignment_expression": Expressions.assigned,
    "identifier": Expressions.name,
    "import": Expressions.name,
    "member_expression": Expressions.member_of,
    "subscript_expression": Expressions.member_of,
    "call_expression": Expressions.call,
    "new_expression": Expressions.call,
    "parenthesized_expression": _inner,
    "await_expression": _inner,
    "sequence_expression": _inner,
    "arrow_function": _function,
    "function_expression": _function,
    "generator_function": _function,
    "regex": lambda program, node: DATA,
}
