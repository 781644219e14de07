"""What expansions ask of a running shell: variables, arithmetic, quoted text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from harness_adapters.guard.effects.holes import (
    ANY,
    DIGITS,
    OPAQUE,
)
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.limits import capped
from harness_adapters.guard.effects.shell.parsing import PARSER
from harness_adapters.guard.effects.shell.words import Words
from harness_adapters.guard.effects.world import World

_ARITHMETIC = re.compile(r"[\d\s()+*/%<>=!&|^~-]*")
PROCESS_FILE = "/dev/fd/substitution"
"""Stands for `<(…)`; a number makes each of them a file of its own."""


class ShellState:
    """Variables and arguments of one shell process. Implements `words.Values`."""

    def __init__(self, world: World, args: Sequence[str], name: str) -> None:
        self.world = world
        self.args = list(args)
        self.name = name
        """`$0`"""
        self.keyed: set[str] = set()
        """Arrays with keys, the elements of which aren't told apart."""
        self.words = Words(self)
        self._substitutions = 0
        self.stdin = ""
        self.last_word = ""
        """`$_`"""

    def output_of(self, node: Node, stdin: str) -> str:
        """Run all statements in a node; returns what they print."""
        raise NotImplementedError

    # Values (see words.py)

    def variable(self, name: str) -> str:
        """See Values."""
        if name in self.world.env:
            return self.world.env[name]
        if name.isdigit():
            place = int(name)
            return ([self.name, *self.args] + [""] * place)[place] if place < 1000 else ""
        if name in ("@", "*"):
            return " ".join(self.args)
        if name == "PWD":
            return self.world.cwd
        if name in ("HOME", "OLDPWD", "TMPDIR", "IFS", "SHELL", "USER"):
            return {
                "HOME": self.world.scope.home,
                "OLDPWD": self.world.scope.workdir,
                "TMPDIR": "/tmp",
                "IFS": " \t\n",
                "SHELL": "/bin/bash",
                "USER": "agent",
            }[name]
        if name in ("#", "?", "$", "!", "-", "RANDOM", "LINENO", "SECONDS", "UID", "PATH"):
            return ANY
        if name == "_":
            return self.last_word
        if name == "PPID":
            return OPAQUE
        if name in self.world.session.env:
            return self.world.session.env[name]
        self.world.emit(Kind.ENVIRONMENT, name)
        return ""

    def assign(self, name: str, value: str) -> None:
        """See Values."""
        self.world.env[name] = capped(value)

    def substituted(self, node: Node) -> str:
        """See Values."""
        world = self.world
        if not world.enter():
            return OPAQUE
        before = dict(world.env), world.cwd
        try:
            if node.type == "process_substitution":
                self._substitutions += 1
                place = f"{PROCESS_FILE}{world.depth}-{self._substitutions}"
                world.remember(place, self.output_of(node, ""))
                return place
            return self.output_of(node, self.stdin).rstrip("\n")
        finally:
            world.env, world.cwd = before
            world.leave()

    def arithmetic(self, text: str) -> str:
        """See Values. Numbers below 10^12 only, anything else is DIGITS."""
        body = text.strip()
        if body.startswith("$(("):
            body = body[3:-2]
        body = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", lambda m: self.variable(m[1]) or "0", body)
        if not body or len(body) > 60 or "**" in body or "<<" in body:
            return DIGITS
        if not _ARITHMETIC.fullmatch(body):
            return DIGITS
        try:
            value = eval(compile(body.replace("/", "//"), "", "eval"), {"__builtins__": {}})
        except (SyntaxError, ValueError, ZeroDivisionError, TypeError, OverflowError):
            return DIGITS
        return str(int(value)) if abs(value) < 10**12 else DIGITS

    def text_of(self, source: str) -> str:
        """See Values."""
        if "$" not in source and "`" not in source:
            return re.sub(r"\\(.)|['\"]", r"\1", source)
        root = PARSER.parse(b': "' + source.replace('"', "").encode() + b'"').root_node
        node = root.children[0] if root.children else root
        words = [c for c in node.children if c.type == "string"]
        return self.words.text(words[0]) if words and not root.has_error else OPAQUE
