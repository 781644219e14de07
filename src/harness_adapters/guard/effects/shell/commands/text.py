"""Programs that print: echo, printf, and the readers of files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, DIGITS, OPAQUE, STAR, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    embedded_path,
    options,
    places,
    printed,
    read_all,
)
from harness_adapters.guard.effects.shell.words import unescaped

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_FORMAT = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?([a-zA-Z]))")
MAX_TEXT = 1 << 20


@command("echo")
def echo(shell: Shell, argv: list[str], stdin: str) -> str:
    """Its words; escapes with -e."""
    end, escapes = "\n", False
    while argv and re.fullmatch(r"-[neE]+", argv[0]):
        end = "" if "n" in argv[0] else end
        escapes = escapes or "e" in argv[0]
        argv = argv[1:]
    text = " ".join(argv)
    return (unescaped(text) if escapes else text) + end


@command("printf")
def printf(shell: Shell, argv: list[str], stdin: str) -> str:
    """Its format, repeated until the arguments are used up; with -v into a variable."""
    target = ""
    if argv[:1] == ["-v"] and len(argv) > 2:
        target, argv = argv[1], argv[2:]
    if argv[:1] == ["--"]:
        argv = argv[1:]
    if not argv:
        return ""
    form, rest = unescaped(argv[0]), argv[1:]
    out: list[str] = []
    while True:
        left = len(rest)
        out.append(_FORMAT.sub(lambda m: _formatted(m, rest), form))
        if not rest or len(rest) == left or sum(map(len, out)) > MAX_TEXT:
            break
    text = "".join(out) if not rest else OPAQUE
    if target:
        shell.assign(target, text)
        return ""
    return text


def _formatted(match: re.Match[str], rest: list[str]) -> str:
    if match[1] is None:
        return "%"
    value = rest.pop(0) if rest else ""
    if match[1] in "bs" or not known(value):
        return unescaped(value) if match[1] == "b" else value
    if match[1] == "c":
        return value[:1]
    try:
        number = ord(value[1]) if value[:1] in "'\"" and len(value) > 1 else int(value or "0", 0)
        return match[0] % number if match[1] in "diouxX" else printed(value)
    except (ValueError, TypeError):
        return printed(value)


@command(
    *("nl", "less", "more", "most", "bat", "batcat", "pr", "fmt", "fold", "expand", "unexpand"),
    *("zcat", "bzcat", "xzcat", "zless", "gzcat", "lz4cat", "zstdcat", "strings", "od", "hexdump"),
    *("hd", "paste", "join", "column", "comm", "iconv", "md5sum", "sha1sum", "sha256sum"),
    *("sha512sum", "b2sum", "cksum", "sum", "file", "diff", "cmp", "sdiff", "vimdiff"),
    *("colordiff", "look", "ptx", "tsort", "shuf", "csvlook", "csvcut", "view", "nano"),
)
def reader(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands, or its input."""
    recursive = any(a in ("-r", "--recursive") for a in argv)
    operands = []
    for word in argv:
        if word[:1] == "-" and len(word) > 1:
            path = embedded_path(word)
            if path:
                operands.append(path)
        else:
            operands.append(word)
    text = read_all(shell, operands, recursive=recursive)
    return printed(text or stdin)


@command("basename")
def basename(shell: Shell, argv: list[str], stdin: str) -> str:
    """The last part of a path."""
    flags, operands = options(argv, ["-s"])
    suffix = flags.get("-s", [""])[-1]
    if len(operands) == 2 and not flags:
        operands, suffix = operands[:1], operands[1]
    return "".join(o.rstrip("/").rsplit("/", 1)[-1].removesuffix(suffix) + "\n" for o in operands)


@command("dirname")
def dirname(shell: Shell, argv: list[str], stdin: str) -> str:
    """The directory of a path."""
    return "".join(o.rstrip("/").rpartition("/")[0] or "." for o in argv if o[:1] != "-") + "\n"


@command("pwd")
def pwd(shell: Shell, argv: list[str], stdin: str) -> str:
    """The working directory."""
    return shell.world.cwd + "\n"


@command("seq")
def seq(shell: Shell, argv: list[str], stdin: str) -> str:
    """Numbers."""
    numbers = [a for a in argv if a.lstrip("-").isdigit()]
    if len(numbers) != len(argv) or not 1 <= len(numbers) <= 3:
        return ANY
    first = int(numbers[0]) if len(numbers) > 1 else 1
    step, last = (int(numbers[1]) if len(numbers) == 3 else 1) or 1, int(numbers[-1])
    count = range(first, last + (1 if step > 0 else -1), step)
    return "".join(f"{n}\n" for n in count) if len(count) <= 20_000 else ANY


@command("tee", "sponge")
def tee(shell: Shell, argv: list[str], stdin: str) -> str:
    """Writes its input to its operands."""
    flags, operands = options(argv)
    append = "-a" in flags or "--append" in flags
    for operand in operands:
        for place in places(shell, operand):
            if place not in ("/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"):
                shell.world.write(place, stdin, append=append)
    return stdin


@command("read", "mapfile", "readarray")
def read(shell: Shell, argv: list[str], stdin: str) -> str:
    """Fills variables from a line of input."""
    flags, names = options(argv, ["-d", "-n", "-N", "-p", "-t", "-u", "-a", "-i"])
    names = [*names, *flags.get("-a", [])] or ["REPLY"]
    line = stdin.strip("\n") if "-d" in flags else stdin.split("\n", 1)[0]
    if not stdin:
        line = ANY
    separator = shell.variable("IFS")
    parts = re.split(f"[{re.escape(separator)}]+", line.strip()) if separator else [line]
    if len(names) == 1:
        shell.assign(names[0], " ".join(parts) if "-a" in flags else line)
        return ""
    parts = line.strip().split(None, len(names) - 1) if separator == " \t\n" else parts
    for place, name in enumerate(names):
        value = parts[place] if place < len(parts) else (ANY if ANY in line else "")
        if place == len(names) - 1 and len(parts) > len(names):
            value = " ".join(parts[place:])
        shell.assign(name, value)
    return ""


@command(
    *("date", "clear", "reset", "type", "which", "whereis", "hash", "help", "man", "uname"),
    *("hostname", "whoami", "id", "groups", "tty", "stty", "tput", "nproc", "arch", "uptime"),
    *("free", "df", "lscpu", "lsb_release", "nvidia-smi", "ulimit", "umask", "times", "history"),
    *("jobs", "bg", "fg", "disown", "getopts", "let", "factor", "cal", "locale"),
    *("top", "htop", "w", "who", "last", "vmstat", "iostat", "ss", "netstat", "bc", "dc"),
    *("expr", "shopt", "complete", "bind", "test", "["),
)
def harmless(shell: Shell, argv: list[str], stdin: str) -> str:
    """Nothing outside itself."""
    return ANY


@command("true", "false", ":", "sleep", "exit", "return", "break", "continue", "shift", "wait")
def silent(shell: Shell, argv: list[str], stdin: str) -> str:
    """Nothing, and prints nothing."""
    return ""


@command("wc")
def count(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands, or its input, of which it prints one number or three."""
    out = reader(shell, argv, stdin)
    return DIGITS + "\n" if argv in (["-l"], ["-c"], ["-w"], ["-m"]) else out


@command("yes")
def yes(shell: Shell, argv: list[str], stdin: str) -> str:
    """One line, over and over."""
    return (" ".join(argv) or "y") + "\n"


@command("mktemp")
def mktemp(shell: Shell, argv: list[str], stdin: str) -> str:
    """A new file or directory."""
    flags, operands = options(argv, ["-p", "--tmpdir"])
    base = (flags.get("-p") or flags.get("--tmpdir") or ["/tmp"])[-1] or "/tmp"
    return f"{re.sub('X{3,}', STAR, operands[0]) if operands else base + '/tmp.' + STAR}\n"


@command("trap")
def trap(shell: Shell, argv: list[str], stdin: str) -> str:
    """Code that is run when the shell ends."""
    if len(argv) > 1 and argv[0] not in ("-", "", "-p", "-l"):
        shell.run(argv[0]) if known(argv[0]) else shell.world.emit(Kind.UNRESOLVED, "code")
    return ""


@command("printenv")
def printenv(shell: Shell, argv: list[str], stdin: str) -> str:
    """Shows variables, all of them without a name."""
    names = [a for a in argv if a[:1] != "-"]
    for name in names or ["<all>"]:
        shell.world.emit(Kind.ENVIRONMENT, name)
    return "".join(shell.variable(name) + "\n" for name in names) if names else ANY


@command("set")
def set_(shell: Shell, argv: list[str], stdin: str) -> str:
    """Options; `--` sets the arguments; alone it shows all variables."""
    if not argv:
        shell.world.emit(Kind.ENVIRONMENT, "<all>")
    elif "--" in argv:
        shell.args = argv[argv.index("--") + 1 :]
    elif argv[0][:1] not in "-+":
        shell.args = argv
    return ""
