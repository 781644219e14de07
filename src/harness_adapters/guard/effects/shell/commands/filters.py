"""Editors and languages for text: sed, awk, jq, SQL, ed. Their programs can reach files, too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, DIGITS, OPAQUE, degraded, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.limits import quick_pattern
from harness_adapters.guard.effects.shell.commands.machine import FOUND
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    embedded_path,
    options,
    places,
    read_all,
)
from harness_adapters.guard.effects.shell.fields import unescaped

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_SED_FILE = re.compile(r"(?:^|[;{}\n\d$/,]|\s)\s*([rRwW])\s+(\S[^\n;}]*)")
_SED_SUBSTITUTE = re.compile(
    r"s(?P<m>[^\w\s\\])(?P<old>(?:\\.|(?!(?P=m)).)*)(?P=m)(?P<new>(?:\\.|(?!(?P=m)).)*)(?P=m)"
    r"(?P<flags>[a-zA-Z0-9]*)(?:\s+(?P<file>/?[^\n;}]+))?",
    re.DOTALL,
)
_SED_INSERTS = re.compile(r"(?m)^\s*(?:[\d$,~]*|/[^/\n]*/)\s*[aic]\s*\\?\s*(.+)$")
_SED_RUN = re.compile(r"(?:^|[;{}\n\d$/])\s*e(?:\s+([^\n]+)|\s*$|;)")


@command("sed", "gsed", "ssed")
def sed(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands, changes them with -i; `r`, `w` and `e` reach files and commands."""
    flags, operands = options(argv, ["-e", "-f", "--expression", "--file", "-l"])
    scripts = flags.get("-e", []) + flags.get("--expression", [])
    for path in flags.get("-f", []) + flags.get("--file", []):
        scripts.append(shell.world.read(path))
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    # The number of a line selects it, whichever it is.
    script = "\n".join(scripts).replace(DIGITS, "1")
    _sed_program(shell, script)
    in_place = any(f.startswith(("-i", "--in-place")) for f in flags)
    if not in_place:
        text = read_all(shell, operands) if operands else stdin
        return _substituted(text, script, flags)
    for operand in operands:
        for place in places(shell, operand):
            before = shell.world.content(place)
            shell.world.emit(Kind.WRITE, place, existing=True, content=script)
            from harness_adapters.guard.effects.scripts import inserted_code

            inserted_code(shell.world, place, "\n".join(_inserted(script)))
            made = _substituted(before, script, flags) if before is not None else None
            if made is not None and known(made):
                shell.world.write(place, made, existing=True)
            elif before is not None:
                shell.world.write(place, None, existing=True)
    return ""


def _inserted(script: str) -> list[str]:
    """Texts that a script puts into a file."""
    texts = [match["new"] for match in _SED_SUBSTITUTE.finditer(script)]
    texts += _SED_INSERTS.findall(_SED_SUBSTITUTE.sub(";", script))
    return [unescaped(text) for text in texts if text]


def _sed_program(shell: Shell, script: str) -> None:
    if not known(script):
        shell.world.emit(Kind.UNRESOLVED, "code")
        return
    rest = script
    for match in _SED_SUBSTITUTE.finditer(script):
        if "e" in match["flags"]:
            shell.world.emit(Kind.UNRESOLVED, "code")
            shell.run(match["new"])
        if "w" in match["flags"] and match["file"]:
            shell.world.write(match["file"].strip(), None)
    rest = _SED_SUBSTITUTE.sub(";", script)
    for letter, path in _SED_FILE.findall(rest):
        if letter in "rR":
            shell.world.read(path.strip())
        else:
            shell.world.write(path.strip(), None)
    for run in _SED_RUN.finditer(rest):
        if run[1]:
            shell.run(run[1])
        else:
            shell.world.emit(Kind.UNRESOLVED, "code")


def _substituted(text: str, script: str, flags: dict[str, list[str]]) -> str:
    match = _SED_SUBSTITUTE.fullmatch(script.strip())
    if not known(text) or match is None or not known(script) or "-n" in flags:
        return ANY if not text else degraded(text)
    old, new = match["old"], re.sub(r"\\(\d)", r"\\g<\1>", match["new"])
    extended = bool({"-E", "-r", "--regexp-extended"} & set(flags))
    if not extended:
        old = re.sub(r"(\\)?([(){}+?|])", lambda m: m[2] if m[1] else "\\" + m[2], old)
    new = re.sub(r"(?<!\\)&", r"\\g<0>", new).replace("\\/", "/").replace("\\&", "&")
    longest = max(map(len, text.split("\n")))
    if not quick_pattern(old, longest) or len(text) * (len(new) + 1) > 1 << 22:
        return degraded(text)
    try:
        pattern = re.compile(old.replace("\\/", "/"), re.I if "I" in match["flags"] else 0)
        count = 0 if "g" in match["flags"] else 1
        lines = [pattern.sub(new, line, count) for line in text.split("\n")]
    except (re.error, IndexError):
        return degraded(text)
    return "\n".join(lines)


_AWK_REACHES = re.compile(
    r"system\s*\(|getline|\||>\s*(?!=|\s*\d)|\bclose\s*\(|@load|@include|ENVIRON", re.DOTALL
)
_AWK_FILE = re.compile(r'(getline\s*(?:\w+\s*)?<|>>?)\s*("(?:[^"\\]|\\.)*"\s*)+')
_AWK_COMMAND = re.compile(r'system\s*\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)')
_AWK_PIPED = re.compile(
    r'((?:"(?:[^"\\]|\\.)*"\s*)+)\|&?\s*getline|\|&?\s*((?:"(?:[^"\\]|\\.)*"\s*)+)'
)
_AWK_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


@command("awk", "gawk", "mawk", "nawk", "busybox-awk")
def awk(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands; the program may run commands and open files."""
    flags, operands = options(argv, ["-F", "-v", "-f", "-i", "-l", "-E", "--assign", "--file"])
    programs = [shell.world.read(p) for p in flags.get("-f", []) + flags.get("--file", [])]
    if not programs:
        programs, operands = operands[:1], operands[1:]
    assigned = dict(
        v.split("=", 1) for v in flags.get("-v", []) + flags.get("--assign", []) if "=" in v
    )
    for program in programs:
        _awk_program(shell, program, assigned)
    files = [o for o in operands if not re.match(r"[A-Za-z_]\w*=", o)]
    files += [o.split("=", 1)[1] for o in operands if re.match(r"[A-Za-z_]\w*=[/~.]", o)]
    text = read_all(shell, files) if files else stdin
    if "inplace" in flags.get("-i", []):
        for file in files:
            shell.world.write(file, None, existing=True)
    chosen = re.match(r"\s*/([^/]+)/", programs[0]) if programs else None
    if text.startswith(FOUND):
        return f"{FOUND}{chosen[1]}\n" if chosen else text
    field = re.fullmatch(r"\s*\{\s*print\s+\$(\d+)\s*;?\s*\}\s*", programs[0]) if programs else None
    if field and field[1] == "1" and text.startswith(DIGITS + ":") and flags.get("-F") == [":"]:
        return DIGITS + "\n"
    if field and known(text) and "-F" not in flags:
        place = int(field[1])
        rows = [[line, *line.split()] for line in text.splitlines()]
        return "".join((row[place] if place < len(row) else "") + "\n" for row in rows)
    spelled = _awk_printed("\n".join(programs), assigned)
    if spelled is None:
        return OPAQUE
    return spelled or degraded(text)


_AWK_PRINT = re.compile(r"\bprintf?\b((?:\"(?:[^\"\\]|\\.)*\"|[^;}\n\"])*)")
_AWK_PART = re.compile(r"\"(?:[^\"\\]|\\.)*\"|\$?\w+|[^\s\"]")


def _awk_printed(program: str, assigned: dict[str, str]) -> str | None:
    """What a program prints that spells a path or a whole text; empty: only its data.

    None where a text of its own goes through something that isn't worked out.
    """
    out: list[str] = []
    for statement in _AWK_PRINT.findall(program):
        if '"' not in statement and not any(name in statement for name in assigned):
            continue
        parts: list[str] = _AWK_PART.findall(re.sub(r"(?s)>.*|\|.*", "", statement))
        made = ""
        for part in parts:
            if part[0] == '"':
                made += unescaped(part[1:-1])
            elif part in assigned:
                made += assigned[part]
            elif part == ",":
                made += " "
            elif part[0] == "$" or part[0].isalnum():
                made += ANY
            elif part not in "()":
                return None if "/" in made else ""
        own = re.sub(f"{ANY}+", "", made)
        if "%" in own and re.match(r"\s*\(?\s*\"[^\"]*%", statement):
            made = re.sub(r"%[-\d.]*[sdifgx].*", ANY, own) if "/" in own else ""
        if "/" in own or program.lstrip().startswith("BEGIN"):
            out.append(made + "\n")
    return "".join(out)


def _awk_program(shell: Shell, program: str, assigned: dict[str, str]) -> None:
    world = shell.world
    if not known(program):
        world.emit(Kind.UNRESOLVED, "code")
        return
    # A regular expression's slashes and comparisons are no redirections.
    bare = re.sub(r"/(?:[^/\\\n]|\\.)+/(?=\s*[{&|,)]|\s*$)", " ", program)
    bare = re.sub(r"[\w\])\s$]\s*>=?\s*-?[\d.]+|\|\|", " ", bare)
    stripped = _AWK_STRING.sub('""', bare)
    if not _AWK_REACHES.search(stripped):
        return
    left = bare
    for match in _AWK_COMMAND.finditer(bare):
        shell.run(_awk_text(match[1]))
        left = left.replace(match[0], " ")
    for match in _AWK_PIPED.finditer(left):
        shell.run(_awk_text(match[1] or match[2]))
    left = _AWK_PIPED.sub(" ", left)
    for match in _AWK_FILE.finditer(left):
        path = _awk_text(match[0])
        if match[1].startswith("getline"):
            world.read(path)
        elif path not in ("/dev/stderr", "/dev/stdout"):
            world.write(path, None, append=">>" in match[1])
    left = _AWK_STRING.sub(" ", _AWK_FILE.sub(" ", left))
    for name, value in assigned.items():
        if re.search(rf"(?:getline\s*(?:\w+\s*)?<|>>?)\s*{re.escape(name)}\b", left):
            world.read(value)
            world.write(value, None)
            left = re.sub(rf"(?:getline\s*(?:\w+\s*)?<|>>?)\s*{re.escape(name)}\b", " ", left)
    if "ENVIRON" in left:
        world.emit(Kind.ENVIRONMENT, "<all>")
    if re.search(r"system\s*\(|getline|@load|@include|\|", left):
        world.emit(Kind.UNRESOLVED, "code")
    elif re.search(r"print[^;}\n]*>\s*[^=\s\d]", left):
        # `print > $1`: named by the data, below the working directory.
        world.emit(Kind.WRITE, world.cwd + "/" + ANY)


def _awk_text(text: str) -> str:
    return "".join(part.replace('\\"', '"') for part in _AWK_STRING.findall(text))


@command("xmllint", "xsltproc", "mlr", "xmlstarlet", "csvsql", "xsv", "qsv")
def table(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands; what may be an expression is tried as a path, too."""
    _, operands = options(argv, ["--xpath", "--stringparam", "-o", "--output", "-d", "-c"])
    read_all(shell, operands)
    return ANY if operands else degraded(stdin)


@command("jq", "yq", "gojq", "jaq")
def jq(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands; `env` in the program shows variables."""
    flags, operands = options(argv, ["-f", "--from-file", "-L", "--indent"])
    for name in ("--slurpfile", "--rawfile", "--argfile"):
        for at, word in enumerate(argv):
            if word == name and at + 2 < len(argv):
                shell.world.read(argv[at + 2])
    for name in ("-f", "--from-file"):
        for path in flags.get(name, []):
            shell.world.read(path)
    program = operands[0] if operands else ""
    if re.search(r"\$ENV\b(?!\.\w)|\benv\b(?!\.\w)", program):
        shell.world.emit(Kind.ENVIRONMENT, "<all>")
    for word in operands[1:]:
        for place in places(shell, word):
            shell.world.read(place)
    if {"-i", "--in-place", "--inplace"} & set(flags):
        for word in operands[1:]:
            shell.world.write(word, None, existing=True)
    return ANY if operands[1:] else degraded(stdin)


_SQL_FILE = re.compile(
    r"""(?ix)(?:attach\s+(?:database\s+)?|readfile\s*\(\s*|read_csv(?:_auto)?\s*\(\s*|
        read_text\s*\(\s*|load_extension\s*\(\s*|\bfrom\s+(?=['"]/)|copy\s+[^;]{1,200}?\s(?:from|to)\s+)
        ['"]([^'"]+)['"]"""
)
_SQL_DOT = re.compile(r"(?m)^\s*\.(\w+)\s*(.*)$")
_SQL_WRITES = re.compile(r"""(?i)writefile\s*\(\s*['"]([^'"]+)['"]|into\s+outfile\s+['"]([^'"]+)""")


@command("sqlite3", "duckdb", "sqlite")
def sqlite(shell: Shell, argv: list[str], stdin: str) -> str:
    """A database, statements on it, and the shell's dot commands."""
    flags, operands = options(argv, ["-cmd", "-init", "-separator", "-c"])
    for operand in operands[:1]:
        if operand != ":memory:":
            shell.world.read(operand)
            shell.world.emit(Kind.WRITE, shell.world.path(operand), existing=True)
    for path in flags.get("-init", []):
        shell.world.read(path)
    programs = [*operands[1:], *flags.get("-cmd", []), *flags.get("-c", []), stdin]
    for program in programs:
        if not program:
            continue
        for path in _SQL_FILE.findall(program):
            shell.world.read(path)
        for match in _SQL_WRITES.finditer(program):
            shell.world.write(match[1] or match[2], None)
        for dot, rest in _SQL_DOT.findall(program):
            _dot_command(shell, dot, rest.strip())
    return ANY


def _dot_command(shell: Shell, dot: str, rest: str) -> None:
    words = rest.replace("'", "").replace('"', "").split()
    if dot in ("shell", "system"):
        shell.run(rest)
    elif dot in ("read", "import", "open", "load", "restore") and words:
        source = rest.lstrip("'\"")
        if source.startswith("|"):
            shell.run(source[1:].rstrip("'\""))
        for word in words:
            shell.world.read(word)
    elif dot in ("output", "once", "backup", "save", "dump", "excel") and words:
        shell.world.write(words[-1], None)


_ED_RUNS = re.compile(r"(?m)^[\d,$.%]*!(.+)$|^\s*:?[\d,$.%]*(?:r|w|e)\s*!(.+)$")
_ED_FILE = re.compile(r"(?m)^:?[\d,$.%]*(r|e|w|W|wq|sav|read|edit|write|source|so)!?\s+(\S+)")


@command("ed", "ex", "red", "vi", "vim", "nvim")
def editor(shell: Shell, argv: list[str], stdin: str) -> str:
    """Changes its operands by a script on its input or in `-c`; `!` runs commands."""
    flags, operands = options(argv, ["-c", "-S", "-p", "-u", "--cmd"])
    starters = [a[1:] for a in argv if a.startswith("+")]
    operands = [o for o in operands if not o.startswith("+")]
    script = "\n".join([*flags.get("-c", []), *starters, *flags.get("--cmd", []), stdin])
    for path in flags.get("-S", []):
        script += "\n" + shell.world.read(path)
    for operand in operands:
        shell.world.read(operand)
        if "-R" not in flags:
            shell.world.write(operand, None, existing=True)
    if not known(script):
        shell.world.emit(Kind.UNRESOLVED, "code")
        return ANY
    for match in _ED_RUNS.finditer(script):
        shell.run(match[1] or match[2])
    for verb, path in _ED_FILE.findall(script):
        if path[:1] == "!":
            continue
        if verb[0] in "wWs" and verb not in ("source", "so"):
            shell.world.write(path, None)
        else:
            shell.world.read(path)
    if re.search(r"system\s*\(|:?\bpy(?:thon|3)?\b|:lua|readfile\s*\(", script):
        shell.world.emit(Kind.UNRESOLVED, "code")
    return ANY


@command("patch")
def patch(shell: Shell, argv: list[str], stdin: str) -> str:
    """Applies a diff, from its input or a file."""
    from harness_adapters.guard.effects.patches import apply_diff

    flags, operands = options(argv, ["-p", "-i", "-d", "-o", "-r", "--input", "--directory", "-B"])
    world, before = shell.world, shell.world.cwd
    for directory in flags.get("-d", []) + flags.get("--directory", []):
        world.cwd = world.path(directory)
    inputs = flags.get("-i", []) + flags.get("--input", []) + operands[1:2]
    text = read_all(shell, inputs) if inputs else stdin
    if not known(text) and any(world.written(world.path(path)) for path in inputs):
        world.emit(Kind.UNRESOLVED, "code")
    for operand in operands[:1] + flags.get("-o", []):
        world.write(operand, None, existing=True)
    strip = (flags.get("-p") or ["0"])[-1]
    if "--dry-run" not in flags:
        apply_diff(world, text, int(strip) if strip.isdigit() else 0, named=bool(operands))
    world.cwd = before
    return ANY


@command("pandoc", "convert", "ffmpeg", "enscript", "groff", "troff", "m4", "cpp", "envsubst")
def converter(shell: Shell, argv: list[str], stdin: str) -> str:
    """Reads its operands and writes what -o names."""
    flags, operands = options(argv, ["-o", "--output"])
    read_all(shell, [o for o in operands if not o.startswith("{")])
    for word in argv:
        path = embedded_path(word)
        if path:
            shell.world.read(path)
    for path in flags.get("-o", []) + flags.get("--output", []):
        shell.world.write(path, None)
    return degraded(stdin) if not operands else ANY
