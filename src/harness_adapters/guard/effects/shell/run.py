"""Runs a shell program on paper: every branch, no process, effects instead of acts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tree_sitter import Node

from harness_adapters.guard.effects.holes import (
    ANY,
    EITHER,
    OPAQUE,
    SET,
    SET_END,
    alternatives,
    choices,
    degraded,
    known,
)
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands import run_command
from harness_adapters.guard.effects.shell.parsing import parse
from harness_adapters.guard.effects.shell.redirections import (
    Redirections,
    last_command,
    lost_dash,
    words_behind,
)
from harness_adapters.guard.effects.world import World

_KEYED = re.compile(rf"(?:\[[^\]]*\]|{SET}.*?{SET_END})=(.*)", re.DOTALL)
"""`[key]=value` among the words of an array."""


def run_shell(world: World, source: str, *, args: Sequence[str] = (), stdin: str = "") -> str:
    """Effects of a shell program go into `world`; returns what it would print.

    A text with holes, or one that is no shell, is an effect of its own: unresolved.
    """
    if not known(source):
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    if not world.enter():
        return ANY
    try:
        return Shell(world, args).run(source, stdin)
    finally:
        world.leave()


class Shell(Redirections):
    """State of one shell process."""

    def __init__(self, world: World, args: Sequence[str] = (), *, name: str = "sh") -> None:
        super().__init__(world, args, name)
        self.functions: dict[str, Node] = {}
        self.behind: dict[int, list[str]] = {}
        """Words of commands, by their nodes, that stand behind a redirection: `cat 2>x a`."""
        self.bodies = {}

    def run(self, source: str, stdin: str = "") -> str:
        """Run a whole program; an unreadable one is unresolved."""
        root, bodies = parse(source)
        self.bodies |= bodies
        if root is None:
            self.world.emit(Kind.UNRESOLVED, "syntax")
            return ANY
        return self.output_of(root, stdin)

    # Statements

    def output_of(self, node: Node, stdin: str) -> str:
        """See ShellState."""
        return "".join(self.statement(child, stdin) for child in node.named_children)

    def statement(self, node: Node, stdin: str) -> str:
        """Run one node; returns its output. `stdin` is what it can read."""
        self.world.step()
        handler = _STATEMENTS.get(node.type)
        if handler is None:
            self.world.emit(Kind.UNRESOLVED, "syntax")
            return ANY
        before, self.stdin = self.stdin, stdin
        try:
            return handler(self, node, stdin)
        finally:
            self.stdin = before

    def pipeline(self, node: Node, stdin: str) -> str:
        """`a | b`: each in a subshell of its own, but for what a `read` sets."""
        for child in node.named_children:
            stdin = self.statement(child, stdin)
        return stdin

    def subshell(self, node: Node, stdin: str) -> str:
        """`( … )`: variables and the directory stay inside."""
        before = dict(self.world.env), self.world.cwd
        out = self.output_of(node, stdin)
        self.world.env, self.world.cwd = before
        return out

    def branches(self, node: Node, stdin: str) -> str:
        """`if` and `case`: all branches, then every variable may have any of their values."""
        out, start, ends = "", dict(self.world.env), []
        plain: list[Node] = []
        condition = node.child_by_field_name("condition")
        for child in node.named_children:
            if child.type in ("elif_clause", "else_clause", "case_item"):
                self.world.env = dict(start)
                skip = {n.id for n in child.children_by_field_name("value")}
                for part in child.named_children:
                    if part.id not in skip:
                        out += self.statement(part, stdin)
                ends.append(self.world.env)
            elif node.type == "case_statement":
                self.words.text(child)
            else:
                plain.append(child)
        self.world.env = dict(start)
        for child in plain:
            out += self.statement(child, stdin)
        del condition
        ends += [self.world.env, start]
        self.world.env = {
            name: alternatives([end[name] for end in ends if name in end])
            for name in {name for end in ends for name in end}
        }
        return out

    def loop(self, node: Node, stdin: str) -> str:
        """`for` and `select` over words, each of them."""
        name = node.child_by_field_name("variable")
        body = node.child_by_field_name("body")
        values = [
            path
            for value in node.children_by_field_name("value")
            for field in self.words.fields(value)
            for path in self.world.globbed(field)
        ]
        if not any(child.type == "in" for child in node.children):
            values = self.args
        out = ""
        for value in values:
            self.assign((name.text or b"").decode() if name else "", value)
            out += self.statement(body, stdin) if body else ""
        self.globs(values)
        return out

    def repeat(self, node: Node, stdin: str) -> str:
        """`while`, `until`, `for ((…))`: over known lines of a `read`, else twice, then widened."""
        body = node.child_by_field_name("body")
        heads = [c for c in node.named_children if body is None or c.id != body.id]
        out = ""
        read = next((c for c in heads if (c.text or b"").startswith((b"read", b"IFS"))), None)
        if read is not None and stdin:
            for line in stdin.splitlines() or [""]:
                self.statement(read, line)
                out += self.statement(body, "") if body else ""
            return out
        before: dict[str, str] = {}
        for _ in range(2):
            for head in heads:
                out += self.statement(head, stdin)
            before = dict(self.world.env)
            out += self.statement(body, stdin) if body else ""
        for name, value in self.world.env.items():
            if before.get(name) != value:
                self.world.env[name] = OPAQUE if known(value) else degraded(value)
        if any(value == OPAQUE for value in self.world.env.values()) and body:
            out += self.statement(body, stdin)
        return out

    def define(self, node: Node, stdin: str) -> str:
        """A function; its body is run when it is called."""
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.functions[(name.text or b"").decode()] = body
        return ""

    def call_function(self, name: str, args: list[str], stdin: str) -> str:
        """Run a function of this shell."""
        if not self.world.enter():
            return ANY
        before, self.args = self.args, args
        try:
            return self.statement(self.functions[name], stdin)
        finally:
            self.args = before
            self.world.leave()

    def redirected(self, node: Node, stdin: str) -> str:
        """A statement with redirections."""
        body = node.child_by_field_name("body")
        redirects = [c for c in node.named_children if body is None or c.id != body.id]
        stdin, outputs, rest = self.open_redirects(redirects, stdin)
        last = last_command(body)
        if last is not None:
            self.behind[last.id] = [
                field for word in words_behind(node, redirects) for field in self.words.fields(word)
            ]
            if lost_dash(node, last):
                self.behind[last.id].append("-")
        out = self.statement(body, stdin) if body else ""
        out += "".join(self.statement(part, out) for part in rest)
        return self.into(outputs, out)

    def command(self, node: Node, stdin: str) -> str:
        """A simple command: assignments, words, redirections."""
        redirects = [c for c in node.named_children if c.type.endswith("_redirect")]
        stdin, outputs, _ = self.open_redirects(redirects, stdin)
        kept: dict[str, str | None] = {}
        argv: list[str] = []
        names: list[str] = []
        for child in node.named_children:
            kind = child.type
            if kind == "variable_assignment":
                name, value = self._assignment(child)
                kept.setdefault(name, self.world.env.get(name))
                self.world.set_variable(name, value)
                self.prompted(name, value)
            elif kind == "command_name":
                text = self.words.text(child.children[0])
                if EITHER in text:
                    # Any of several programs: each is run with the same arguments.
                    names = [each for each in choices(text) if each]
                else:
                    argv += self.words.fields(child.children[0])
            elif kind == "process_substitution" and argv and _touches(child):
                # `--file=<(…)`: the grammar takes it for two words.
                argv[-1] += "".join(self.words.fields(child))
            elif not kind.endswith("_redirect"):
                argv += self.words.fields(child)
        argv += self.behind.pop(node.id, ())
        out = ""
        for words in [[*name.split(), *argv] for name in names] or [argv]:
            out += run_command(self, words, stdin) if words else ""
        self.globs(argv)
        for name, before in kept.items():
            if before is None:
                self.world.env.pop(name, None)
            else:
                self.world.env[name] = before
        return self.into(outputs, out)

    def _assignment(self, node: Node) -> tuple[str, str]:
        name_node, value_node = node.child_by_field_name("name"), node.child_by_field_name("value")
        name, bracket, _ = (
            (name_node.text or b"").decode().partition("[") if name_node else ("",) * 3
        )
        if value_node is None:
            value = ""
        elif value_node.type == "array":
            fields = [f for c in value_node.named_children for f in self.words.fields(c)]
            pairs = [_KEYED.fullmatch(f) for f in fields]
            if any(pairs):
                self.keyed.add(name)
            value = " ".join(p[1] if p else f for p, f in zip(pairs, fields, strict=True))
        else:
            value = self.words.text(value_node)
        if any(child.type == "+=" for child in node.children):
            space = " " if value_node is not None and value_node.type == "array" else ""
            value = self.variable(name) + space + value
        elif bracket:
            # `words[k]=…` beside the elements that are there: which is which isn't followed.
            self.keyed.add(name)
            value = f"{self.world.env[name]} {value}" if self.world.env.get(name) else value
        return name, value

    def assignment(self, node: Node, stdin: str) -> str:
        """`NAME=value` on its own."""
        name, value = self._assignment(node)
        self.world.set_variable(name, value)
        self.prompted(name, value)
        return ""

    def prompted(self, name: str, value: str) -> None:
        """Variables whose text the shell runs or expands by itself."""
        if name == "PROMPT_COMMAND" and value:
            self.run(value)
        elif name in ("PS0", "PS1", "PS2", "PS4") and ("$(" in value or "`" in value):
            self.text_of(value)

    def declaration(self, node: Node, stdin: str) -> str:
        """`export`, `declare`, `local`, `readonly`; alone they print all variables."""
        arguments = node.named_children
        word = (node.children[0].text or b"").decode()
        # `declare -n`: another name for a variable, which may change its value unseen.
        another = word != "export" and any(
            child.type == "word" and re.match(rb"-\w*n", child.text or b"") for child in arguments
        )
        for child in arguments:
            if child.type == "variable_assignment":
                self.assignment(child, stdin)
                if another:
                    self.world.env[self._assignment(child)[0]] = OPAQUE
            else:
                for text in self.words.fields(child):
                    if "=" in text:
                        name, _, value = text.partition("=")
                        self.world.set_variable(name, value)
        flags = (b"-x", b"-p", b"-px", b"-xp")
        if word != "local" and all(child.text in flags for child in arguments):
            self.world.emit(Kind.ENVIRONMENT, "<all>")
        return ANY if not arguments else ""

    def unset(self, node: Node, stdin: str) -> str:
        """`unset NAME`."""
        for child in node.named_children:
            for name in self.words.fields(child):
                self.world.env.pop(name, None)
                self.world.emit(Kind.ENVIRONMENT, name)
        return ""

    def test(self, node: Node, stdin: str) -> str:
        """`[ … ]` and `[[ … ]]`: substitutions inside are run, nothing else."""
        for child in node.named_children:
            if child.type == "word":
                self.last_word = self.words.text(child)
            elif child.type in _SUBSTITUTING:
                self.words.fields(child)
            elif child.named_child_count:
                self.test(child, stdin)
        return ""

    def nothing(self, node: Node, stdin: str) -> str:
        """Comments and the words of a `for ((…))`."""
        return self.test(node, stdin)

    def from_file(self, node: Node, stdin: str) -> str:
        """`$(< file)`: its contents."""
        return self.open_redirects([node], stdin)[0]

    def inner(self, node: Node, stdin: str) -> str:
        """`{ … }`, lists, `do … done`, `! command`."""
        return self.output_of(node, stdin)


def _touches(node: Node) -> bool:
    before = node.prev_sibling
    return before is not None and before.end_byte == node.start_byte


_SUBSTITUTING = ("command_substitution", "process_substitution", "string", "concatenation")
_STATEMENTS: dict[str, Callable[[Shell, Node, str], str]] = {
    "command": Shell.command,
    "list": Shell.inner,
    "pipeline": Shell.pipeline,
    "redirected_statement": Shell.redirected,
    "variable_assignment": Shell.assignment,
    "variable_assignments": Shell.inner,
    "declaration_command": Shell.declaration,
    "unset_command": Shell.unset,
    "subshell": Shell.subshell,
    "compound_statement": Shell.inner,
    "do_group": Shell.inner,
    "negated_command": Shell.inner,
    "if_statement": Shell.branches,
    "case_statement": Shell.branches,
    "for_statement": Shell.loop,
    "while_statement": Shell.repeat,
    "c_style_for_statement": Shell.repeat,
    "function_definition": Shell.define,
    "test_command": Shell.test,
    "file_redirect": Shell.from_file,
    "comment": Shell.nothing,
    "program": Shell.inner,
}
for _name in (
    *("binary_expression", "unary_expression", "postfix_expression", "number", "word"),
    *("parenthesized_expression", "variable_name", "simple_expansion", "expansion"),
    *("arithmetic_expansion", "ternary_expression"),
):
    _STATEMENTS[_name] = Shell.nothing
__all__ = ["Shell", "run_shell"]
