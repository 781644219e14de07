"""From a shell program's text to its syntax tree.

Long here-documents are set aside meanwhile: their text is data, not syntax.
"""

from __future__ import annotations

import itertools
import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

PARSER = Parser(Language(tree_sitter_bash.language()))
_READ_FILE = re.compile(r"\$\(\s*<(?![<(])")
_READ_WRITE = re.compile(r"(?<=[\s;&|])(\d*)<>(?=\s*[\w/.~$\"'])")
_HERE_STRING_LAST = re.compile(
    r"((?:\d*>>?|<)\s*[\w./~$-]+)\s+(<<<\s*(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|[\w./$-]+))"
)
_LONG = 4096
_HEAD = re.compile(r"<<-?[ \t]*(['\"])(\w+)\1[^\n]*\n")
_MARK = "\ufde0"
"""A noncharacter: texts that hold one are never analysed, so that none can be taken for a mark."""
_NUMBERS = itertools.count()
"""No mark stands for two texts: a program may run others, and go on."""


def parse(source: str) -> tuple[Node | None, dict[str, str]]:
    """The root, or None for what is no shell; and the bodies of here-documents by their marks."""
    short, bodies = _set_aside(source)
    root = _tree(short)
    if bodies and (root.has_error or not _all_found(root, bodies)):
        root, bodies = _tree(source), {}
    if root.has_error:
        # Forms that the grammar lacks, in words that mean the same to the analysis.
        same = _READ_WRITE.sub(_one_way, _READ_FILE.sub("$(cat <", source))
        root, bodies = _tree(_HERE_STRING_LAST.sub(r"\2 \1", same)), {}
    return (None if root.has_error else root), bodies


def _tree(text: str) -> Node:
    return PARSER.parse(text.encode(errors="replace")).root_node


def _one_way(match: re.Match[str]) -> str:
    """`N<>`: of the standard input it is read, of any other it counts as appended to."""
    return match[1] + ("<" if match[1] in ("", "0") else ">>")


def _set_aside(source: str) -> tuple[str, dict[str, str]]:
    """The program with marks for the bodies of long here-documents with a quoted delimiter."""
    bodies: dict[str, str] = {}
    if len(source) < _LONG or "<<" not in source:
        return source, bodies

    parts: list[str] = []
    at = 0
    while head := _HEAD.search(source, at):
        end = re.compile(rf"\n\t*{head[2]}(?=\n|\Z)").search(source, head.end() - 1)
        if end is None or end.start() - head.end() < _LONG:
            parts.append(source[at : head.end()])
            at = head.end()
            continue
        mark = f"{_MARK}{next(_NUMBERS)}\n"
        bodies[mark] = source[head.end() : end.start() + 1]
        parts += [source[at : head.end()], mark]
        at = end.start() + 1
    return "".join([*parts, source[at:]]), bodies


def _all_found(root: Node, bodies: dict[str, str]) -> bool:
    """Whether each mark became the body of a here-document, and nothing else."""
    found = 0
    left = [root]
    while left:
        node = left.pop()
        if node.type == "heredoc_body":
            found += (node.text or b"").decode(errors="replace") in bodies
        left += node.children
    return found == len(bodies)
