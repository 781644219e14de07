"""Long here-documents are set aside while a program is parsed: their text is data, not syntax."""

from __future__ import annotations

import re

from tree_sitter import Node

_LONG = 4096
_HEAD = re.compile(r"<<-?[ \t]*(['\"])(\w+)\1[^\n]*\n")
_MARK = "\ufde0"
"""A noncharacter: texts that hold one are never analysed, so that none can be taken for a mark."""


def set_aside(source: str) -> tuple[str, dict[str, str]]:
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
        mark = f"{_MARK}{len(bodies)}\n"
        bodies[mark] = source[head.end() : end.start() + 1]
        parts += [source[at : head.end()], mark]
        at = end.start() + 1
    return "".join([*parts, source[at:]]), bodies


def all_found(root: Node, bodies: dict[str, str]) -> bool:
    """Whether each mark became the body of a here-document, and nothing else."""
    found = 0
    left = [root]
    while left:
        node = left.pop()
        if node.type == "heredoc_body":
            found += (node.text or b"").decode(errors="replace") in bodies
        left += node.children
    return found == len(bodies)
