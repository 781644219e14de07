"""Python: programs of the command line, here-documents, scripts and code tools, by `ast`.

An abstract interpreter: constants are worked out (concatenation, joins, decoders), the rest is
known by its origin. Calls of the standard library and of what opens files become effects.
"""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Sequence

from harness_adapters.guard.effects.holes import ANY, OPAQUE, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.interpret import run_tree
from harness_adapters.guard.effects.world import World

_AROUND = (
    "{}",
    "try:\n    pass\n{}",
    "if 0:\n    pass\n{}",
    "def f():\n{}",
    "def f():\n    if 0:\n{}",
    "class C:\n{}",
    "x = [{}]",
    "try:\n    pass\n{}\n    pass",
    "{}\n    pass",
)


_LONG = 16_384
_REACHING = (
    *("import", "open", "exec", "eval", "getattr", "setattr", "globals", "vars", "locals", "__"),
    *("compile", "input", "os.", "sys.", "frame", "f_locals", "print", "read", "Path", "pytest"),
    *("subprocess", "shutil", "run(", "system", "socket", "request", "Popen", "unittest", "gc."),
)


def reaches_nothing(text: str) -> bool:
    """Whether a long text has no word that leads beyond its own values, so that it can be skipped.

    Without an import, an attribute of the interpreter or a builtin for files or code, a program
    only computes.
    """
    return len(text) > _LONG and not any(word in text for word in _REACHING)


def parse(text: str) -> ast.Module | None:
    """The program, or None where the text is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def run_python(
    world: World,
    text: str,
    *,
    argv: Sequence[str] = (),
    stdin: str = "",
    name: str = "",
    library: bool = False,
) -> str:
    """Effects of a program go into `world`; returns what it would print.

    A text with holes, or one that is no Python, is unresolved. In a `library`, which is only
    written yet, it is let be: what doesn't parse doesn't run.
    """
    if not known(text):
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    if reaches_nothing(text):
        return OPAQUE
    tree = parse(text)
    if tree is None and not library:
        lines = [line for line in text.splitlines() if line.lstrip()[:1] not in ("!", "%")]
        tree = parse("\n".join(lines)) or parse(textwrap.dedent(text))
    if tree is None:
        if not library:
            world.emit(Kind.UNRESOLVED, "syntax")
        return ANY
    return run_tree(world, tree, argv=argv, stdin=stdin, name=name, library=library)


def run_fragment(world: World, text: str, name: str) -> None:
    """Part of a file, as edit tools write it: indented, or cut out of a larger statement."""
    if reaches_nothing(text):
        return
    dedented = textwrap.dedent(text)
    indented = textwrap.indent(dedented, "        ")
    for around in _AROUND:
        body = dedented if around.startswith(("{", "try", "if", "x")) else indented
        tree = parse(around.replace("{}", body))
        if tree is not None:
            run_tree(world, tree, argv=(), stdin=ANY, name=name, library=True)
            return
    for line in text.splitlines():
        tree = parse(line.strip())
        if tree is not None:
            run_tree(world, tree, argv=(), stdin=ANY, name=name, library=True)


__all__ = ["parse", "run_fragment", "run_python"]
