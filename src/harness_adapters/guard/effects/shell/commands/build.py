"""Build tools: they run what their files say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import command, options

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell


@command("make", "gmake", "bmake")
def make(shell: Shell, argv: list[str], stdin: str) -> str:
    """Runs rules of a Makefile."""
    from harness_adapters.guard.effects.scripts import run_makefile

    flags, operands = options(argv, ["-C", "-f", "-I", "-j", "-o", "-W", "--file", "--directory"])
    world, before = shell.world, shell.world.cwd
    for directory in flags.get("-C", []) + flags.get("--directory", []):
        world.cwd = world.path(directory)
    files = flags.get("-f", []) + flags.get("--file", [])
    assigned = dict(o.split("=", 1) for o in operands if "=" in o)
    targets = [o for o in operands if "=" not in o]
    for word in argv:
        if word.startswith("--eval="):
            run_makefile(shell, word[7:], targets, assigned)
    for file in files or ["GNUmakefile", "makefile", "Makefile"]:
        if file == "-":
            run_makefile(shell, stdin, targets, assigned)
            continue
        path = world.path(file)
        text = world.content(path)
        world.emit(Kind.EXECUTE, path)
        if text is not None:
            run_makefile(shell, text, targets, assigned)
        elif world.written(path):
            world.emit(Kind.UNRESOLVED, "code")
    world.cwd = before
    return ANY


@command("cmake", "ninja", "meson", "bazel", "mvn", "gradle", "ant", "just", "rake", "invoke")
def builder(shell: Shell, argv: list[str], stdin: str) -> str:
    """Other build tools; the files that they read are the task's own."""
    return ANY


@command("gcc", "cc", "g++", "clang", "c++", "clang++", "rustc", "javac", "tsc", "ld", "as")
def compiler(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads sources, writes what -o names."""
    from harness_adapters.guard.effects.scripts import judge_compiled

    flags, operands = options(argv, ["-o", "-I", "-L", "-include", "-x", "-D"])
    if "-" in operands and known(stdin):
        judge_compiled(shell, stdin)
    for operand in operands:
        path = shell.world.path(operand)
        text = shell.world.content(path) if shell.world.written(path) else None
        if text is not None and known(text):
            judge_compiled(shell, text)
    for operand in operands + flags.get("-I", []) + flags.get("-include", []):
        shell.world.emit(Kind.READ, shell.world.path(operand))
    for path in flags.get("-o", []):
        shell.world.emit(Kind.WRITE, shell.world.path(path))
    return ANY
