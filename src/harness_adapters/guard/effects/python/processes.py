"""Calls that run something: shell commands, code in strings, other programs, nested tools."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from harness_adapters.guard.effects.holes import ANY, OPAQUE, choices, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Function,
    Handle,
    Ref,
    Value,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program

Call: TypeAlias = "Callable[[Program, list[Value], dict[str, Value]], Value]"

NESTED = ("hermes_tools",)
"""Modules through which code tools call other tools."""
_POSITIONAL = {
    "terminal": ("command", "background", "timeout", "workdir"),
    "read_file": ("path", "offset", "limit"),
    "write_file": ("path", "content"),
    "search_files": ("pattern", "target", "path", "file_glob"),
    "patch": ("path", "old_string", "new_string", "replace_all", "mode", "patch"),
    "web_extract": ("urls",),
    "web_search": ("query",),
}


def run_text(program: Program, value: Value, stdin: str = "") -> str:
    """A text for the shell."""
    from harness_adapters.guard.effects.shell.run import run_shell

    out = ""
    for text in choices(text_of(value)):
        cwd, env = program.world.cwd, dict(program.world.env)
        out += run_shell(program.world, text, stdin=stdin)
        program.world.cwd, program.world.env = cwd, env
    return out


def run_words(program: Program, words: list[Value], stdin: str = "") -> str:
    """A list of words, without a shell."""
    from harness_adapters.guard.effects.shell.commands import run_command
    from harness_adapters.guard.effects.shell.run import Shell

    argv = [text_of(word) for word in words]
    if not argv:
        return ""
    if not program.world.enter():
        return ANY
    cwd, env = program.world.cwd, dict(program.world.env)
    try:
        return run_command(Shell(program.world), argv, stdin)
    finally:
        program.world.cwd, program.world.env = cwd, env
        program.world.leave()


def _subprocess(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    command = args[0] if args else kwargs.get("args")
    world = program.world
    cwd, env = world.cwd, dict(world.env)
    if kwargs.get("cwd") is not None:
        world.cwd = world.path(text_of(kwargs["cwd"]))
    if isinstance(kwargs.get("env"), dict):
        for name, value in kwargs["env"].items():
            world.set_variable(str(name), text_of(value))
    stdin = text_of(kwargs.get("input", kwargs.get("stdin", "")) or "")
    for name in ("stdout", "stderr"):
        target = kwargs.get(name)
        if isinstance(target, Handle) and target.path:
            world.write(target.path, None)
    shell = kwargs.get("shell")
    if isinstance(command, (list, tuple)) and not (shell and shell is not DATA):
        out = run_words(program, list(command), stdin)
    elif isinstance(command, (list, tuple)):
        out = run_text(program, command[0] if command else "", stdin)
    else:
        out = run_text(program, command, stdin)
    world.cwd, world.env = cwd, env
    return Handle(out)


def _system(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Handle(run_text(program, args[0] if args else kwargs.get("command", kwargs.get("cmd"))))


def _execute(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`os.exec*` and `os.spawn*`: a program and its words, as a list or spread."""
    rest = [a for a in args if not isinstance(a, int)]
    if rest and isinstance(rest[0], Ref):
        rest = rest[1:]
    if len(rest) > 1 and isinstance(rest[1], (list, tuple)):
        words = [rest[0], *rest[1][1:]]
    else:
        words = [rest[0], *rest[2:]] if rest else []
    return Handle(run_words(program, words))


def _spawn_pty(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    words = args[0] if args else ""
    return Handle(run_words(program, list(words) if isinstance(words, (list, tuple)) else [words]))


def _code(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`exec` and `eval`."""
    from harness_adapters.guard.effects.python import parse

    source = args[0] if args else None
    world = program.world
    if isinstance(source, Handle):
        source = source.text
    result: Value = DATA
    for text in choices(text_of(source)):
        tree = parse(text.strip()) if known(text) else None
        if tree is None:
            world.emit(Kind.UNRESOLVED, "code")
            result = DARK
            continue
        if not world.enter():
            return DARK
        for statement in tree.body:
            if hasattr(statement, "value") and type(statement).__name__ == "Expr":
                result = program.value(statement.value, program.globals)
            else:
                program.block([statement], program.globals)
        world.leave()
    return result


def _compiled(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return args[0] if args else DARK


def _run_path(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Handle(run_words(program, ["python3", args[0] if args else ANY]))


def _spec(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A module from a file is taken to be run where its specification is made."""
    return _run_path(program, [kwargs.get("location", args[1] if len(args) > 1 else ANY)], {})


def _run_module(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Handle(run_words(program, ["python3", "-m", args[0] if args else ANY]))


def _pytest(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    words = args[0] if args and isinstance(args[0], (list, tuple)) else []
    return Handle(run_words(program, ["pytest", *words]))


def _repository(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Ref("git.Repo()")


def _objects(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A library that reads git's store by itself."""
    program.world.emit(Kind.GIT, "objects")
    return DATA


def repository_command(program: Program, verb: str, args: list[Value]) -> Value:
    """`Repo().git.VERB(…)` of GitPython."""
    return Handle(run_words(program, ["git", verb.replace("_", "-"), *args]))


def _kill(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    pid = text_of(args[0]) if args else ANY
    aim = "kill-parent" if OPAQUE in pid else "kill-all" if pid in ("-1", "0") else f"kill:{pid}"
    program.world.emit(Kind.PROCESS, aim)
    return None


def _connect(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return DATA


def _escape(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    program.world.emit(Kind.ESCAPE, "namespace")
    return None


def _nested(name: str) -> Call:
    def run(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A tool that the code calls: judged as if it crossed the wire."""
        from harness_adapters.guard.effects.tools import tool_effects

        names = _POSITIONAL.get(name, ())
        arguments: dict[str, object] = dict(zip(names, map(_plain, args), strict=False))
        arguments |= {key: _plain(value) for key, value in kwargs.items()}
        if len(args) > len(names):
            program.world.emit(Kind.UNRESOLVED, "shape")
        out = tool_effects(program.world, name, arguments)
        return Handle(out) if isinstance(out, str) else DATA

    return run


def _plain(value: Value) -> object:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (bool, int, float)) or value is None:
        return value
    return text_of(value)


def _socket(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Ref("socket.connection")


def _connected(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    address = args[0] if args else DATA
    host = address[0] if isinstance(address, (tuple, list)) and address else address
    text = text_of(host)
    if isinstance(address, str) and text.startswith("/"):
        program.world.emit(Kind.READ, program.world.path(text))
    else:
        program.world.emit(Kind.NETWORK, text.lower())
    return None


def _registered(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for value in args:
        if isinstance(value, Function):
            program.call(value, [], {}, unknown=True)
    if any(
        isinstance(value, Ref) and re.search(r"_exit|os\.|sys\.exit", value.name) for value in args
    ):
        program.world.emit(Kind.HIJACK, "exit")
    return None


PROCESSES: dict[str, Call] = {
    **{
        f"subprocess.{name}": _subprocess
        for name in ("run", "call", "check_call", "check_output", "Popen")
    },
    **dict.fromkeys(("subprocess.getoutput", "subprocess.getstatusoutput"), _system),
    **dict.fromkeys(("os.system", "os.popen", "commands.getoutput", "posix.system"), _system),
    **{
        f"os.{name}": _execute
        for name in (
            *("execv", "execve", "execvp", "execvpe", "execl", "execle", "execlp", "execlpe"),
            *("spawnl", "spawnle", "spawnlp", "spawnv", "spawnve", "spawnvp", "posix_spawn"),
            *("posix_spawnp", "spawnvpe", "spawnlpe"),
        )
    },
    "asyncio.create_subprocess_shell": _system,
    "asyncio.create_subprocess_exec": lambda p, a, k: Handle(run_words(p, a)),
    "pty.spawn": _spawn_pty,
    "exec": _code,
    "eval": _code,
    "compile": _compiled,
    "runpy.run_path": _run_path,
    "importlib.util.spec_from_file_location": _spec,
    "importlib.util.module_from_spec": lambda program, args, kwargs: DATA,
    "runpy.run_module": _run_module,
    "execfile": _run_path,
    "pytest.main": _pytest,
    **dict.fromkeys(("os.kill", "os.killpg", "signal.pidfd_send_signal"), _kill),
    **dict.fromkeys(("git.Repo", "git.Repo.init"), _repository),
    **dict.fromkeys(("pygit2.Repository", "dulwich.repo.Repo", "pygit2.discover"), _objects),
    **dict.fromkeys(("os.setns", "os.unshare", "os.chroot"), _escape),
    **dict.fromkeys(("socket.socket", "socket"), _socket),
    **dict.fromkeys(("socket.connection.connect", "socket.connection.connect_ex"), _connected),
    "socket.connection.sendto": lambda p, a, k: _connected(p, a[-1:], k),
    "atexit.register": _registered,
    **{f"{module}.{name}": _nested(name) for module in NESTED for name in _POSITIONAL},
    **{f"get_ipython.{name}": _system for name in ("system", "getoutput")},
}
