"""From a word of the shell to the fields that it expands to.

Order of expansions as in POSIX (XCU 2.6) and bash: braces, tilde, variables and substitutions,
splitting, globs, quote removal. Quoted characters carry a LITERAL mark until the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from typing import Protocol

from tree_sitter import Node

from harness_adapters.guard.effects.holes import (
    ANY,
    EITHER,
    END,
    LITERAL,
    MAX_ALTERNATIVES,
    OPAQUE,
    OR,
    SPLIT,
    alternatives,
    choices,
    degraded,
    known,
)
from harness_adapters.guard.effects.limits import MAX_TEXT, quick_pattern
from harness_adapters.guard.effects.shell.fields import fields, quoted, split, unescaped

_EXPANSION = re.compile(r"(#|!)?(\w+|[@*#?$!-])(\[[^\]]*\])?(.*)", re.DOTALL)


_EVERY_ELEMENT = re.compile(r"\$(?:@|\{(?:@|\w+\[@\])(?![#%/^,+?=-]))")
"""What is many fields within quotes, too: `"$@"`, `"${words[@]}"`."""
_JOINED = re.compile(r"\$(?:\*|\{(?:\*|\w+\[\*\])\})")
"""`"$*"`, `"${words[*]}"`: one field, with the first character of IFS between the elements."""
_LONGEST_TRIMMED = 4096


class Values(Protocol):
    """What expansions ask the running shell for."""

    keyed: set[str]

    def variable(self, name: str) -> str:
        """Value of a variable or a special parameter; empty when unset."""
        ...

    def assign(self, name: str, value: str) -> None:
        """Set a variable."""
        ...

    def substituted(self, node: Node) -> str:
        """Output of a command or process substitution."""
        ...

    def arithmetic(self, text: str) -> str:
        """Value of an arithmetic expression."""
        ...

    def text_of(self, source: str) -> str:
        """A text expanded as within double quotes."""
        ...


class Words:
    """Expands the words of one shell."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def fields(self, node: Node) -> list[str]:
        """Fields that a word becomes: none, one or many."""
        return fields(self._marked(node))

    def text(self, node: Node) -> str:
        """A word as one text, without splitting and globs: assignments, here-strings."""
        marked = self._marked(node).replace(SPLIT, " ")
        return re.sub(rf"{LITERAL}(.)|\\(.)", r"\1\2", marked, flags=re.DOTALL)

    def _marked(self, node: Node) -> str:
        handler = _MARKED.get(node.type)
        return handler(self, node) if handler else self._parts(node, in_quotes=False)

    def _parts(self, node: Node, *, in_quotes: bool) -> str:
        """Text between the children as it stands, the children expanded."""
        raw = node.text or b""
        if not node.child_count:
            return raw.decode(errors="replace")
        out: list[str] = []
        at, size = node.start_byte, 0
        for child in node.children:
            size += len(out[-1]) if out else 0
            if size > MAX_TEXT:
                return OPAQUE
            if child.start_byte > at:
                out.append(self._between(raw, node, at, child.start_byte, in_quotes))
            out.append(self._quoted_child(child) if in_quotes else self._marked(child))
            at = child.end_byte
        if node.end_byte > at:
            out.append(self._between(raw, node, at, node.end_byte, in_quotes))
        return "".join(out)

    @staticmethod
    def _between(raw: bytes, node: Node, start: int, end: int, in_quotes: bool) -> str:
        text = raw[start - node.start_byte : end - node.start_byte].decode(errors="replace")
        return quoted(text) if in_quotes else text

    def _quoted_child(self, child: Node) -> str:
        kind = child.type
        if kind == '"':
            return ""
        text = (child.text or b"").decode(errors="replace")
        if kind in ("string_content", "heredoc_content"):
            return quoted(re.sub(r'\\([$`"\\])|\\\n', r"\1", text))
        if kind in _EXPANDING:
            value = self._value(child)
            if _EVERY_ELEMENT.match(text) and known(value):
                return SPLIT.join(map(quoted, value.split(" ")))
            if _JOINED.match(text):
                value = value.replace(" ", self.values.variable("IFS")[:1])
            return quoted(value)
        return quoted(text)

    def _value(self, node: Node) -> str:
        kind = node.type
        if kind == "simple_expansion":
            return self.values.variable((node.text or b"").decode(errors="replace")[1:])
        if kind == "expansion":
            return self.parameter((node.text or b"").decode(errors="replace")[2:-1])
        if kind == "arithmetic_expansion":
            text = (node.text or b"").decode(errors="replace")
            if "`" in text or "$(" in text[2:]:
                self._parts(node, in_quotes=False)
                return ANY
            return self.values.arithmetic(text)
        return self.values.substituted(node)

    def parameter(self, body: str) -> str:
        """`${body}` with its operators (bash manual, 3.5.3)."""
        match = _EXPANSION.fullmatch(body)
        if match is None:
            return OPAQUE
        prefix, name, subscript, rest = match.groups()
        if prefix == "#" and not rest:
            value = self.values.variable(name)
            return str(len(value)) if known(value) else ANY
        value = self.values.variable(name)
        if subscript == "[0]":
            # A variable alone is its own first element.
            value = alternatives([value, value.split(" ")[0]])
        elif subscript and subscript not in ("[@]", "[*]"):
            value = (
                alternatives(value.split(" "))
                if name in self.values.keyed and known(value)
                else self._element(value, subscript[1:-1])
            )
        if prefix == "!":
            value = self._indirect(value)
        if not rest:
            return value
        if (
            rest[0] == ":"
            and rest[1:2] not in tuple("-=+?")
            and (name in ("@", "*") or subscript in ("[@]", "[*]"))
        ):
            return self._elements(value, rest[1:], first=int(name in ("@", "*")))
        return alternatives([self._operated(name, v, rest) for v in choices(value)])

    def _indirect(self, name: str) -> str:
        """`${!name}`: any variable at all where the name isn't known."""
        if not name:
            return OPAQUE
        names = choices(name)
        if not all(map(known, names)):
            self.values.variable("<all>")
            return OPAQUE
        return alternatives([self.values.variable(each) for each in names])

    def _element(self, value: str, index: str) -> str:
        place = self.values.arithmetic(index)
        items = value.split(" ")
        if place.lstrip("-").isdigit() and -len(items) <= int(place) < len(items):
            return items[int(place)]
        return alternatives(items) if known(value) else degraded(value)

    def _elements(self, value: str, argument: str, *, first: int) -> str:
        """`${@:2}`, `${words[@]:1:2}`: elements, not characters. Arguments begin at 1."""
        start, _, length = argument.partition(":")
        at, count = self.values.arithmetic(start), self.values.arithmetic(length or "0")
        if not known(value) or not at.isdigit() or not count.isdigit():
            return degraded(value)
        chosen = value.split(" ")[max(0, int(at) - first) :]
        return " ".join(chosen[: int(count)] if length else chosen)

    def _operated(self, name: str, value: str, rest: str) -> str:
        operator = rest[:2] if rest[:2] in (":-", ":=", ":+", ":?", "##", "%%", "//") else rest[0]
        argument = rest[len(operator) :]
        if operator in (":-", "-", ":=", "="):
            default = self.values.text_of(argument)
            if operator in (":=", "=") and not value:
                self.values.assign(name, default)
            return value or default
        if operator in (":+", "+"):
            return self.values.text_of(argument) if value else ""
        if operator in (":?", "?"):
            return value
        if operator in ("#", "##", "%", "%%"):
            return _trimmed(value, operator, self.values.text_of(argument))
        if operator in ("/", "//"):
            return self._replaced(value, operator, argument)
        if operator == ":":
            return self._slice(value, argument)
        if operator in ("^", ","):
            change = str.upper if operator == "^" else str.lower
            if not known(value):
                return degraded(value)
            return change(value) if argument[:1] == operator else change(value[:1]) + value[1:]
        return value if operator == "@" else OPAQUE

    def _replaced(self, value: str, operator: str, argument: str) -> str:
        old, _, new = re.sub(r"\\/", "\x00", argument).partition("/")
        old, new = (self.values.text_of(part).replace("\x00", "/") for part in (old, new))
        if not known(value) or not known(old + new):
            return degraded(value) if not known(value) else OPAQUE
        if not quick_pattern(old, len(value)) or len(value) * (len(new) + 1) > 1 << 22:
            return OPAQUE
        pattern = translate(old).removesuffix(r"\Z").removesuffix(r"\z")
        return re.sub(pattern, lambda _: new, value, count=0 if operator == "//" else 1)

    def _slice(self, value: str, argument: str) -> str:
        first, _, length = argument.partition(":")
        start, size = self.values.arithmetic(first), self.values.arithmetic(length or "0")
        if not known(value) or not start.lstrip("-").isdigit() or not size.lstrip("-").isdigit():
            return degraded(value)
        tail = value[int(start) :]
        return tail if not length else tail[: int(size)]


def _trimmed(value: str, operator: str, pattern: str) -> str:
    if not known(value) or not known(pattern):
        if operator[0] == "%" and pattern and value.endswith(pattern):
            return value[: -len(pattern)]
        return value if known(pattern) and not pattern.startswith("*/") else degraded(value)
    if len(value) > _LONGEST_TRIMMED or not quick_pattern(pattern, len(value)):
        return OPAQUE
    matches = re.compile(translate(pattern)).match
    cuts = range(len(value) + 1)
    if operator[0] == "#":
        fits = [cut for cut in cuts if matches(value[:cut])]
        return value[(max if operator == "##" else min)(fits) :] if fits else value
    fits = [cut for cut in cuts if matches(value[cut:])]
    return value[: (min if operator == "%%" else max)(fits)] if fits else value


def _raw(words: Words, node: Node) -> str:
    return (node.text or b"").decode(errors="replace").replace("\\\n", "")


def _single(words: Words, node: Node) -> str:
    return quoted((node.text or b"").decode(errors="replace")[1:-1])


def _ansi(words: Words, node: Node) -> str:
    return quoted(unescaped((node.text or b"").decode(errors="replace")[2:-1]))


def _double(words: Words, node: Node) -> str:
    return words._parts(node, in_quotes=True)


def _translated(words: Words, node: Node) -> str:
    return words._marked(node.children[-1])


def _unquoted(words: Words, node: Node) -> str:
    return split(words._value(node), words.values.variable("IFS"))


def _process(words: Words, node: Node) -> str:
    return quoted(words.values.substituted(node))


_EXPANDING = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "arithmetic_expansion"}
)
_MARKED: dict[str, Callable[[Words, Node], str]] = {
    "word": _raw,
    "raw_string": _single,
    "ansi_c_string": _ansi,
    "string": _double,
    "heredoc_body": _double,
    "translated_string": _translated,
    "process_substitution": _process,
    **dict.fromkeys(_EXPANDING, _unquoted),
}
__all__ = ["EITHER", "END", "MAX_ALTERNATIVES", "OR", "Values", "Words", "fields", "unescaped"]
