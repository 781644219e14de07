"""Programs that run other programs, and scripts by their paths."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    nested,
    options,
    read_all,
)
from harness_adapters.guard.effects.shell.words import unescaped

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VALUED: dict[str, tuple[str, ...]] = {
    "timeout": ("-s", "-k", "--signal", "--kill-after"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n", "-p"),
    "sudo": ("-u", "-g", "-p", "-C", "-h", "-r", "-t", "-D", "-U"),
    "doas": ("-u", "-C"),
    "stdbuf": ("-i", "-o", "-e"),
    "time": ("-f", "-o"),
    "strace": ("-e", "-o", "-p", "-s", "-P"),
    "ltrace": ("-e", "-o", "-p", "-s"),
    "taskset": ("-c",),
    "watch": ("-n", "--interval"),
    "setpriv": ("--reuid", "--regid"),
    "runuser": ("-u",),
    "exec": ("-a",),
}
_FIRST_IS_NO_COMMAND = ("timeout", "taskset", "flock")


def _wrapper(name: str) -> None:
    @command(name)
    def run(shell: Shell, argv: list[str], stdin: str) -> str:
        """Runs its operands as a command."""
        flags, words = options(argv, _VALUED.get(name, ()), stop=True)
        if name in _FIRST_IS_NO_COMMAND:
            words = words[1:]
        for flag in ("-o", "--output"):
            for path in flags.get(flag, []):
                shell.world.write(path, None)
        if name in ("strace", "ltrace") and "-p" in flags:
            shell.world.emit(Kind.ESCAPE, "ptrace")
        if name in ("command", "builtin") and {"-v", "-V"} & set(flags):
            return ANY
        if name == "watch" and words:
            return shell.run(" ".join(words)) if known(" ".join(words)) else _unresolved(shell)
        if name in ("sudo", "doas", "runuser") and {"-i", "-s"} & set(flags) and not words:
            return run_text(shell, stdin)
        return nested(shell, words, stdin) if words else stdin


for _name in (
    *("timeout", "nice", "ionice", "sudo", "doas", "stdbuf", "time", "strace", "ltrace", "nohup"),
    *("setsid", "command", "builtin", "exec", "taskset", "watch", "setpriv", "runuser", "flock"),
    *("unbuffer", "faketime", "chrt", "catchsegv", "proxychains", "busybox", "toybox", "gtimeout"),
    *("fakeroot", "eatmydata", "rlwrap", "coproc", "winpty", "torsocks", "linux64", "setarch"),
):
    _wrapper(_name)


def _unresolved(shell: Shell) -> str:
    shell.world.emit(Kind.UNRESOLVED, "code")
    return ANY


def run_text(shell: Shell, text: str) -> str:
    """Run a text as a program of this shell."""
    if not text.strip():
        return ""
    if not known(text):
        return _unresolved(shell)
    if not shell.world.enter():
        return ANY
    try:
        out = shell.run(text)
        if "\\n" in text and "\n" not in text.strip():
            # Written with escaped ends of lines, which another program may turn into real ones.
            out += shell.run(unescaped(text))
        return out
    finally:
        shell.world.leave()


@command("env")
def env(shell: Shell, argv: list[str], stdin: str) -> str:
    """Sets variables for a command; alone it shows all of them."""
    words = list(argv)
    world = shell.world
    before, cwd = dict(world.env), world.cwd
    try:
        while words:
            word = words[0]
            match = _ASSIGNMENT.fullmatch(word)
            if match:
                world.set_variable(match[1], match[2])
            elif word in ("-u", "--unset") and len(words) > 1:
                world.emit(Kind.ENVIRONMENT, words[1])
                words = words[1:]
            elif word in ("-C", "--chdir") and len(words) > 1:
                world.cwd = world.path(words[1])
                words = words[1:]
            elif word.startswith("--chdir="):
                world.cwd = world.path(word[8:])
            elif word in ("-S", "--split-string") or word.startswith(("-S", "--split-string=")):
                rest = word.partition("=")[2] if word.startswith("--") else word[2:]
                text = " ".join([rest, *words[1:]]).strip()
                return run_text(shell, text)
            elif word.startswith("-") and word != "-":
                pass
            elif word != "-":
                return nested(shell, words, stdin)
            words = words[1:]
        world.emit(Kind.ENVIRONMENT, "<all>")
        return ANY
    finally:
        world.env, world.cwd = before, cwd


@command("bash", "sh", "dash", "zsh", "ksh", "ash", "rbash", "fish", "mksh", "yash")
def shell_program(shell: Shell, argv: list[str], stdin: str) -> str:
    """A shell: a text with -c, a script, or its input."""
    from harness_adapters.guard.effects.shell.run import Shell as Another

    flags, words = options(argv, ["-o", "-O", "--rcfile", "--init-file"], stop=True)
    world = shell.world
    for flag in ("--rcfile", "--init-file"):
        for path in flags.get(flag, []):
            run_path(shell, world.path(path), [], "")
    startup = world.env.get("BASH_ENV") or world.env.get("ENV")
    if startup:
        run_path(shell, world.path(startup), [], "")
    before = dict(world.env), world.cwd
    try:
        if "-c" in flags:
            text = words[0] if words else ""
            if not known(text):
                return _unresolved(shell)
            if not world.enter():
                return ANY
            other = Another(world, words[2:])
            other.functions = shell.functions
            other.name = words[1] if len(words) > 1 else "bash"
            out = other.run(text, stdin)
            world.leave()
            return out
        if words and "-s" not in flags:
            return run_path(shell, world.path(words[0]), words[1:], stdin, interpreter="sh")
        return run_text(shell, stdin)
    finally:
        world.env, world.cwd = before


@command("eval")
def eval_(shell: Shell, argv: list[str], stdin: str) -> str:
    """Its words as a program of this shell."""
    return run_text(shell, " ".join(argv))


@command("source", ".")
def source(shell: Shell, argv: list[str], stdin: str) -> str:
    """A file as a program of this shell."""
    if not argv:
        return ""
    path = shell.world.path(argv[0])
    if argv[0] in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0", "-"):
        return run_text(shell, stdin)
    before, shell.args = shell.args, argv[1:] or shell.args
    try:
        return run_path(shell, path, argv[1:], stdin, interpreter="source")
    finally:
        shell.args = before


@command("ssh-agent", "dircolors", "direnv", "pyenv", "rbenv", "nvm")
def settings(shell: Shell, argv: list[str], stdin: str) -> str:
    """Programs that print settings for the shell: assignments of their own, nothing from the call.

    With a command of their own (`conda run`, `ssh-agent CMD`) they run it.
    """
    if argv and (argv[0] in ("run", "exec") or argv[0][:1] != "-"):
        words = argv[1:] if argv[0] in ("run", "exec") else []
        _flags, words = options(words, ["-n", "-p", "--name", "--prefix"], stop=True)
        if words:
            return nested(shell, words, stdin)
    return ""


@command("script", "expect", "at", "su")
def typed(shell: Shell, argv: list[str], stdin: str) -> str:
    """Runs the text after -c, or its input."""
    flags, words = options(argv, ["-c", "--command"])
    texts = flags.get("-c", []) + flags.get("--command", [])
    for text in texts or [stdin]:
        run_text(shell, text)
    for word in words:
        shell.world.emit(Kind.WRITE, shell.world.path(word))
    return ANY


def run_path(shell: Shell, path: str, argv: list[str], stdin: str, *, interpreter: str = "") -> str:
    """Run a file: by its first line, or by `interpreter`. Unknown contents are the task's own.

    Contents that this session wrote and that aren't known are unresolved.
    """
    from harness_adapters.guard.effects.scripts import run_script

    if path in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        return run_text(shell, stdin)
    return run_script(shell, path, argv, stdin, interpreter)


__all__ = ["read_all", "run_path", "run_text"]
