"""Programs that look for files or lines, and those that run others over what was found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import (
    ALL,
    ANY,
    DIGITS,
    components_meet,
    degraded,
    from_glob,
    known,
)
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.machine import FOUND
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    nested,
    options,
    places,
    read_all,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_FIND_VALUED = frozenset(
    {
        *("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type"),
        *("-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer", "-user"),
        *("-group", "-perm", "-maxdepth", "-mindepth", "-links", "-inum", "-printf", "-samefile"),
        *("-newermt", "-lname", "-fstype", "-uid", "-gid", "-regextype", "-anewer", "-cnewer"),
    }
)
_FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")
_FIND_WRITES = ("-fprint", "-fprint0", "-fprintf", "-fls")


@command("find")
def find(shell: Shell, argv: list[str], stdin: str) -> str:
    """Names below its roots; -exec and -delete act on what fits the tests."""
    world = shell.world
    index = 0
    while index < len(argv) and argv[index][:1] not in ("-", "(", "!"):
        index += 1
    while index < len(argv) and argv[index] in ("-L", "-H", "-P"):
        index += 1
        while index < len(argv) and argv[index][:1] not in ("-", "(", "!"):
            index += 1
    roots = [a for a in argv[:index] if a[:1] != "-"] or ["."]
    names: list[str] = []
    actions: list[list[str]] = []
    depth: int | None = None
    deletes, negated = False, False
    while index < len(argv):
        word = argv[index]
        index += 1
        if word in _FIND_RUNS:
            start = index
            while index < len(argv) and argv[index] not in (";", "+"):
                index += 1
            actions.append(argv[start:index])
            index += 1
        elif word in _FIND_WRITES:
            if index < len(argv):
                world.write(argv[index], None)
            index += 2 if word == "-fprintf" else 1
        elif word == "-delete":
            deletes = True
        elif word in ("!", "-not"):
            negated = True
            continue
        elif word in _FIND_VALUED or word == "-files0-from":
            value = argv[index] if index < len(argv) else ""
            index += 1
            if word in ("-name", "-iname") and not negated:
                names.append(from_glob(value))
            elif word in ("-path", "-wholename", "-ipath") and not negated:
                names.append(from_glob(value.rsplit("/", 1)[-1]))
            elif word == "-maxdepth" and value.isdigit():
                depth = int(value)
            elif word in ("-newer", "-samefile", "-files0-from"):
                world.read(value)
        negated = False
    found = _found(shell, roots, names, depth)
    if "-mindepth" not in argv:
        tops = [place for root in roots for place in places(shell, root)]
        found += [p for p in tops if not names or any(components_meet(_last(p), n) for n in names)]
    for root in roots:
        for place in places(shell, root):
            world.emit(Kind.LIST, place, recursive=depth is None or depth > 1)
    for path in found:
        if deletes:
            world.delete(path, recursive=not names)
        for action in actions:
            nested(shell, [word.replace("{}", path) for word in action], "")
    return "".join(path + "\n" for path in found)


def _last(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]


def _found(shell: Shell, roots: list[str], names: list[str], depth: int | None) -> list[str]:
    found = []
    for root in roots:
        for place in places(shell, root):
            base = place.rstrip("/")
            for name in names or [ALL]:
                if depth == 0:
                    found.append(place)
                elif depth is not None and depth <= 3:
                    stars = [base + ("/" + ALL) * n + "/" + name for n in range(depth)]
                    found += [path for star in stars for path in shell.world.globbed(star)]
                else:
                    found.append(f"{base}/{ANY}/{name}" if names else f"{base}/{ANY}")
    return found


@command("fd", "fdfind")
def fd(shell: Shell, argv: list[str], stdin: str) -> str:
    """Names that fit a pattern, below the other operands."""
    runs: list[str] = []
    for flag in ("-x", "-X", "--exec", "--exec-batch"):
        if flag in argv:
            runs = argv[argv.index(flag) + 1 :]
            argv = argv[: argv.index(flag)]
    _, operands = options(argv, ["-e", "-t", "-d", "-E", "--type", "--extension", "--exclude"])
    roots = operands[1:] or ["."]
    found = [shell.world.path(root).rstrip("/") + "/" + ANY for root in roots]
    for root in roots:
        shell.world.emit(Kind.LIST, shell.world.path(root), recursive=True)
    for path in found if runs else []:
        words = [word.replace("{}", path) for word in runs]
        nested(shell, words if "{}" in " ".join(runs) else [*words, path], "")
    return "\n".join(found)


@command("locate", "mlocate", "plocate", "slocate")
def locate(shell: Shell, argv: list[str], stdin: str) -> str:
    """Every path of the machine that holds its operand."""
    _, operands = options(argv, ["-l", "-n", "-d", "--limit", "--database"])
    return "".join(f"/{ANY}{from_glob(operand)}{ANY}\n" for operand in operands)


_GREP_VALUED = (
    *("-e", "-f", "-m", "-A", "-B", "-C", "-d", "-D", "-g", "-t", "-T", "-j", "-r", "-E"),
    *("--include", "--exclude", "--exclude-dir", "--regexp", "--file", "--glob", "--type"),
    *("--max-count", "--context", "--pre", "--iglob"),
)


_NUMBERED = re.compile(r"-[nmiwxEFPGeosvh]+")
"""Options with which each line that `grep -n` prints begins with its number."""


@command("grep", "egrep", "fgrep", "zgrep", "rgrep", "ugrep", "rg", "ag", "ack", "pcregrep")
def grep(shell: Shell, argv: list[str], stdin: str) -> str:
    """Lines of its operands; -r goes below them. rg, ag and ack always do."""
    is_grep = True
    pattern = ""
    valued = [v for v in _GREP_VALUED if v not in ("-r", "-E", "-j", "-t", "-T", "-g")]
    flags, operands = options(argv, valued)
    world = shell.world
    for path in flags.get("-f", []) + flags.get("--file", []):
        if path != "-":
            world.read(path)
    for program in flags.get("--pre", []):
        nested(shell, [program], "")
    if not any(flags.get(f) for f in ("-e", "-f", "--regexp", "--file")) and not (
        {"--files"} & set(flags)
    ):
        pattern, operands = (operands[:1] or [""])[0], operands[1:]
    recursive = bool({"-r", "-R", "--recursive", "--dereference-recursive"} & set(flags))
    includes = [from_glob(g) for g in flags.get("--include", [])]
    if not operands:
        if not recursive and (stdin or is_grep):
            return _lines(stdin, flags, pattern)
        operands = ["."]
    texts = []
    for operand in operands:
        for place in places(shell, operand):
            if recursive and includes:
                for include in includes:
                    world.emit(Kind.READ, f"{place.rstrip('/')}/{ANY}/{include}")
            else:
                texts.append(world.read(place, recursive=recursive))
    names = {"-l", "-L", "--files-with-matches", "--files-without-match"} & set(flags)
    if names:
        return "".join(
            f"{place.rstrip('/')}/{ANY}\n" if recursive else f"{place}\n"
            for operand in operands
            for place in places(shell, operand)
        )
    out = degraded("".join(texts)) if texts else ANY
    if len(texts) == 1 and "-n" in flags and all(_NUMBERED.fullmatch(flag) for flag in flags):
        return f"{DIGITS}:{out}\n"
    return out


def _lines(text: str, flags: dict[str, list[str]], pattern: str) -> str:
    """Lines that a filter leaves: those that fit, or all where that can't be told."""
    if text.startswith(FOUND):
        # Of processes, those with the pattern in their lines.
        return text if "-v" in flags else f"{FOUND}{pattern.replace(' ', '.')}\n"
    if {"-o", "--only-matching"} & set(flags):
        return degraded(text)
    if {"-c", "--count", "-q", "--quiet"} & set(flags):
        return ANY if "-c" in flags else ""
    simple = re.fullmatch(r"[\w\s/.-]+", pattern) is not None
    if not known(text) or not simple or {"-A", "-B", "-C", "-i"} & set(flags):
        return text
    keep = "-v" not in flags
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if (re.search(pattern, line) is not None) is keep)


def _searcher(name: str) -> None:
    @command(name)
    def search(shell: Shell, argv: list[str], stdin: str) -> str:
        """Recursive by itself, below the working directory without an operand."""
        flags, operands = options(argv, _GREP_VALUED)
        for program in flags.get("--pre", []):
            nested(shell, [program], "")
        for path in flags.get("-f", []) + flags.get("--file", []):
            shell.world.read(path)
        if not ({"--files", "-e", "-f", "--regexp", "--file"} & set(flags)):
            operands = operands[1:]
        if not operands and stdin:
            return _lines(stdin, flags, "*")
        kind = Kind.LIST if "--files" in flags else Kind.READ
        found = [place for o in operands or ["."] for place in places(shell, o)]
        for place in found:
            shell.world.emit(kind, place, recursive=True)
        return "".join(f"{place.rstrip('/')}/{ANY}\n" for place in found)


for _name in ("rg", "ag", "ack", "ugrep"):
    _searcher(_name)


@command("xargs", "parallel")
def xargs(shell: Shell, argv: list[str], stdin: str) -> str:
    """Runs a command with its input, or a file's lines, as arguments."""
    valued = ["-a", "-I", "-n", "-P", "-L", "-d", "-s", "-E", "-j", "--arg-file", "--max-args"]
    flags, words = options(argv, [*valued, "--max-procs", "--replace", "--delimiter"], stop=True)
    sources = flags.get("-a", []) + flags.get("--arg-file", [])
    text = read_all(shell, sources) if sources else stdin
    items = text.split("\0") if "\0" in text else _items(text, flags)
    if ":::" in words:
        at = words.index(":::")
        words, items = words[:at], words[at + 1 :]
    words = words or ["echo"]
    mark = (flags.get("-I") or flags.get("--replace") or [""])[-1]
    mark = mark or ("{}" if "{}" in words else "")
    if mark:
        out = [nested(shell, [w.replace(mark, item) for w in words], "") for item in items]
        return "".join(out)
    one_by_one = any(flags.get(f) for f in ("-n", "-L", "--max-args"))
    if one_by_one and len(items) <= 1000:
        return "".join(nested(shell, [*words, item], "") for item in items)
    return nested(shell, [*words, *items], "")


def _items(text: str, flags: dict[str, list[str]]) -> list[str]:
    mark = (flags.get("-d") or flags.get("--delimiter") or [""])[-1]
    if mark:
        return text.rstrip("\n").split(mark.replace("\\n", "\n"))
    if known(text) and ("'" in text or '"' in text):
        return text.replace("'", "").replace('"', "").split()
    return text.split("\n") if "-I" in flags else text.split()
