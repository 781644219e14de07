"""Redirections of the shell: what they read, where output goes, words behind them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from harness_adapters.guard.effects.holes import ANY, SET, STAR
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.state import ShellState

_NETWORK_FILE = re.compile(r"/dev/(?:tcp|udp)/([^/]+)(?:/|$)")
_SILENT = ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty")


class Redirections(ShellState):
    """Opens and fills what the redirections of a statement name."""

    bodies: dict[str, str]
    """Of here-documents, by the marks in their place."""

    def open_redirects(
        self, nodes: list[Node], stdin: str
    ) -> tuple[str, list[tuple[str, bool]], list[Node]]:
        """Effects of reading; returns input, outputs as (path, append), and what follows."""
        outputs: list[tuple[str, bool]] = []
        rest: list[Node] = []
        for node in nodes:
            if node.type == "herestring_redirect":
                stdin = self.words.text(node.named_children[-1]) + "\n"
            elif node.type == "heredoc_redirect":
                stdin = self._heredoc(node)
                inner = [
                    c
                    for c in node.named_children
                    if c.type not in ("heredoc_start", "heredoc_body", "heredoc_end")
                ]
                more = [c for c in inner if c.type.endswith("_redirect")]
                stdin, others, after = self.open_redirects(more, stdin)
                outputs += others
                rest += [c for c in inner if c.type not in _WORDS and c not in more] + after
            elif node.type == "file_redirect":
                stdin = self._file(node, stdin, outputs)
        return stdin, outputs, rest

    def _heredoc(self, node: Node) -> str:
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        body = next((c for c in node.children if c.type == "heredoc_body"), None)
        if body is None:
            return ""
        raw = (body.text or b"").decode(errors="replace")
        raw = self.bodies.get(raw, raw)
        if any(c.text == b"<<-" for c in node.children):
            raw = re.sub(r"(?m)^\t+", "", raw)
        if start is not None and re.search(rb"['\"\\]", start.text or b""):
            return raw
        return self.words.text(body) if "$" in raw or "`" in raw or "\\" in raw else raw

    def _file(self, node: Node, stdin: str, outputs: list[tuple[str, bool]]) -> str:
        destination = node.child_by_field_name("destination")
        operator = next((c.type for c in node.children if c.type[0] in "<>&"), ">")
        if destination is None:
            return stdin
        for place in self.words.fields(destination) or [""]:
            host = _NETWORK_FILE.match(self.world.path(place)) if "dev" in place else None
            if host:
                self.world.emit(Kind.NETWORK, host[1])
                return ANY
            if operator in (">&", "<&", "&>", "&>>") and place.rstrip("-").isdigit():
                continue
            if operator.startswith("<") and operator != "<>":
                if place not in ("-", ""):
                    stdin = self.world.read(place)
            elif place not in _SILENT and place != "-":
                outputs.append((place, ">>" in operator))
        return stdin

    def into(self, outputs: list[tuple[str, bool]], text: str) -> str:
        """Write output to the files that redirections name; returns what is left to print."""
        for path, append in outputs:
            for place in self.world.globbed(path):
                self.world.write(place, text, append=append)
        return "" if outputs else text

    def globs(self, words: Sequence[str]) -> None:
        """Words that the shell expands show what a directory holds."""
        for word in words:
            if STAR in word or SET in word:
                head = STAR.join(word.split(SET)).partition(STAR)[0]
                self.world.emit(Kind.LIST, self.world.path(head.rpartition("/")[0] or "."))


_WORDS = frozenset(
    {
        *("word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation"),
        *(
            "number",
            "expansion",
            "simple_expansion",
            "command_substitution",
            "arithmetic_expansion",
        ),
        *("process_substitution", "brace_expression"),
    }
)


def last_command(node: Node | None) -> Node | None:
    """The command of a statement that redirections after it belong to."""
    while node is not None and node.type in ("list", "pipeline", "negated_command"):
        node = node.named_children[-1] if node.named_children else None
    return node if node is not None and node.type == "command" else None


def words_behind(node: Node, redirects: list[Node]) -> list[Node]:
    """Words that the grammar takes for further targets of a redirection: `cat 2>/dev/null a`."""
    found: list[Node] = []
    for redirect in redirects:
        words = [child for child in redirect.named_children if child.type in _WORDS]
        if redirect.type == "file_redirect":
            found += words[1:]
        elif redirect.type == "heredoc_redirect":
            inner = [c for c in redirect.named_children if c.type.endswith("_redirect")]
            found += words + words_behind(redirect, inner)
    return found


def lost_dash(node: Node, body: Node) -> bool:
    """Whether the grammar dropped a lone `-` before a redirection: `make -f - <<E`."""
    after = (node.text or b"")[body.end_byte - node.start_byte :].lstrip()
    return after[:1] == b"-"
