"""Languages that run a text of the command line, a file, a module or their input."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.commands.table import (
    command,
    generic,
    nested,
    options,
    places,
    read_all,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_RUNNERS = ("pytest", "py.test", "unittest", "nose2", "tox", "nox")
_SELECTION = re.compile(
    r"--deselect|--ignore|--co\b|--collect-only|--noconftest|-p\s*no:|--override-ini|--rootdir"
)


@command("python", "pypy", "ipython", "python3")
def python(shell: Shell, argv: list[str], stdin: str) -> str:
    """A text with -c, a module with -m, a file, or the input."""
    from harness_adapters.guard.effects.python import run_python

    flags: list[str] = []
    words = list(argv)
    while words and words[0][:1] == "-" and words[0] != "-":
        word = words.pop(0)
        match = re.fullmatch(r"-[bBdEhiIOPqsSuvVx]*([cmWX])(.*)", word, re.DOTALL)
        flags.append(word)
        if match is None:
            continue
        value = match[2] or (words.pop(0) if words else "")
        if match[1] == "c":
            return run_python(shell.world, value, argv=["-c", *words], stdin=stdin)
        if match[1] == "m":
            return _module(shell, value, words, stdin)
    for path in shell.world.env.get("PYTHONSTARTUP", "").split(":"):
        if path:
            shell.world.emit(Kind.EXECUTE, shell.world.path(path))
    if not words or words[0] == "-" or words[0] == "/dev/stdin":
        if {"-V", "--version", "-VV", "-h", "--help"} & set(flags):
            return "Python 3"
        return run_python(shell.world, stdin, argv=words, stdin=ANY) if stdin else ANY
    from harness_adapters.guard.effects.shell.commands.wrappers import run_path

    for place in places(shell, words[0])[:1]:
        return run_path(shell, place, words[1:], stdin, interpreter="python")
    return ANY


def _module(shell: Shell, name: str, words: list[str], stdin: str) -> str:
    world = shell.world
    if not known(name):
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    path = world.path(name.replace(".", "/"))
    for file in (path + ".py", path + "/__main__.py"):
        if world.content(file) is not None or world.written(file):
            from harness_adapters.guard.effects.shell.commands.wrappers import run_path

            return run_path(shell, file, words, stdin, interpreter="python")
    if name in ("pip", "pytest", "tox", "nox", "coverage", "uv", "poetry", "twine", "build"):
        return nested(shell, [name, *words], stdin)
    if name in ("tarfile", "zipfile"):
        return nested(shell, [name, *words], stdin)
    if name in ("timeit", "code"):
        from harness_adapters.guard.effects.python import run_python

        flags, texts = options(words, ["-n", "-r", "-s", "-u"])
        for text in texts + flags.get("-s", []):
            run_python(world, text)
        return ANY
    if name in ("runpy", "cProfile", "profile", "trace", "pdb", "doctest", "dis", "py_compile"):
        _, rest = options(words, ["-o", "-s", "-C", "-f", "-m"])
        if rest and name not in ("py_compile", "dis", "doctest"):
            return python(shell, rest, stdin)
    return generic(shell, words, stdin)


@command("pytest", "py.test", "tox", "nox", "nose2", "nosetests", "coverage", "unittest")
def runner(shell: Shell, argv: list[str], stdin: str) -> str:
    """Runs tests of the working directory; plugins and configurations are read, too."""
    world = shell.world
    if argv[:1] == ["run"] and len(argv) > 1:
        return python(shell, argv[1:], stdin)
    if not {"--version", "-V", "--help", "-h"} & set(argv):
        # Without a name it takes what lies where it is started, and its settings from there.
        world.emit(Kind.EXECUTE, world.cwd)
    index = 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word in ("-p", "-c", "--confcutdir", "--rootdir", "-o", "--junitxml", "-m", "-k"):
            value = argv[index] if index < len(argv) else ""
            index += 1
            if word in ("-c", "--confcutdir", "--rootdir"):
                world.read(value)
            elif word == "--junitxml":
                world.write(value, None)
            continue
        for option in ("--junitxml=", "--junit-xml=", "--html=", "--result-log=", "--log-file="):
            if word.startswith(option):
                world.write(word[len(option) :], None)
        if word.startswith("-"):
            if "=/" in word:
                world.read(word.split("=", 1)[1], recursive=True)
            continue
        for place in places(shell, word.split("::", 1)[0]):
            world.emit(Kind.READ, place, recursive=True)
            world.emit(Kind.EXECUTE, place)
    return ANY


@command("node", "nodejs", "bun", "deno", "tsx", "ts-node")
def node(shell: Shell, argv: list[str], stdin: str) -> str:
    """JavaScript: a text with -e or -p, a file, or the input."""
    from harness_adapters.guard.effects.javascript import printing, run_javascript
    from harness_adapters.guard.effects.shell.commands.wrappers import run_path

    if argv[:1] in (["run"], ["x"], ["eval"], ["test"]):
        verb, argv = argv[0], argv[1:]
        if verb == "eval":
            run_javascript(shell.world, " ".join(argv))
            return ANY
        if verb == "x":
            return nested(shell, argv, stdin)
    valued = ["-e", "-p", "--eval", "--print", "-r", "--require", "--import", "-pe", "--loader"]
    flags, words = options(argv, valued, stop=True)
    for flag in ("-r", "--require", "--import", "--loader"):
        for path in flags.get(flag, []):
            shell.world.emit(Kind.EXECUTE, shell.world.path(path))
    shown = [t for f in ("-p", "--print", "-pe") for t in flags.get(f, []) if t]
    texts = [t for f in ("-e", "--eval") for t in flags.get(f, []) if t]
    texts += map(printing, shown)
    if texts:
        return "".join(run_javascript(shell.world, text) for text in texts)
    if not words or words == ["-"]:
        if stdin and not {"-v", "--version"} & set(flags):
            run_javascript(shell.world, stdin)
        return ANY
    return run_path(shell, shell.world.path(words[0]), words[1:], stdin, interpreter="node")


_CAPABLE = {
    "perl": (
        r"\bopen\b|\bsysopen\b|\bsystem\b|\bexec\b|\bqx\b|`|\beval\b|\brequire\b|\bdo\s*['\"$(]"
        r"|\bunlink\b|\brename\b|\bopendir\b|\bglob\b|<[\w/*$]+[/.*]|\bsocket\b|\bsymlink\b"
        r"|\bkill\b|\buse\s+(?!strict|warnings|utf8|feature|List::Util|POSIX\b|JSON|Data::)"
        r"|/[gimsxr]*e[gimsxr]*\s*(?:;|\}|$)|\bARGV\b|%ENV|\brmdir\b|\bmkdir\b|\bfork\b|\bslurp"
    ),
    "ruby": (
        r"\b(?:File|IO|Dir|Open3|Kernel|Process|FileUtils|Pathname|URI|Net|Socket|TCPSocket)\b"
        r"|\bopen\b|\bsystem\b|\bexec\b|`|%x|\beval\b|\bload\b|\brequire\b|\bspawn\b|\bsend\b"
        r"|\bENV\b|instance_eval|class_eval|\bARGF\b|__send__"
    ),
    "php": (
        r"file|open|read|include|require|exec|system|passthru|popen|proc_|`|eval|assert|unlink"
        r"|copy|rename|curl|socket|glob|scandir|getenv|\$_ENV|\$\w+\s*\("
    ),
    "lua": r"\bio\b|\bos\b|require|loadfile|dofile|\bload\b|popen|_G|package",
    # All but what only looks at the program, whole lines of it.
    "gdb": (
        r"(?m)^(?!(?:run|r|start|bt|backtrace(?: full)?|where|thread apply all bt(?: full)?|q|quit"
        r"|info (?:locals|args|registers|threads|breakpoints|frame)|c|continue|n|next|s|step|finish"
        r"|up|down|frame \d+|list[ \w:,.]*|(?:b|break|tbreak) [\w:./+-]+"
        r"|(?:p|print) [\w.*&>\[\] -]+|set (?:pagination|confirm|height|width) \w+)$).+$"
    ),
    "R": r"file|read|source|system|scan|readLines|url|unlink|Sys\.|eval|parse|download|write|sink",
}
_PLAIN_READ = {
    "ruby": r"""\b(?:File|IO)\.(?:read|readlines|foreach|binread)\(\s*["']([^"'#\\|]+)["']\s*\)""",
    "php": r"""\b(?:file_get_contents|file|readfile)\(\s*["']([^"'$\\:]+)["']\s*\)""",
}
"""A call that reads one file, named by a text without anything to work out in it."""
_PATH = re.compile(r"""['"`<(\s=]((?:/|~/|\.\.?/)[^'"`<>\s,;)|]+)""")


def _interpreter(name: str, texts: tuple[str, ...], valued: tuple[str, ...]) -> None:
    @command(name)
    def run(shell: Shell, argv: list[str], stdin: str) -> str:
        """A language that isn't modelled: its text may only work on what it is given."""
        flags, words = options(argv, [*texts, *valued], stop=name != "perl")
        if name == "gdb" and ({"-p", "--pid"} & set(flags) or "attach" in " ".join(argv)):
            shell.world.emit(Kind.ESCAPE, "ptrace")
        program = "\n".join(value for flag in texts for value in flags.get(flag, []))
        world = shell.world
        if not program:
            if words:
                from harness_adapters.guard.effects.shell.commands.wrappers import run_path

                path = world.path(words[0])
                return run_path(shell, path, words[1:], stdin, interpreter=name)
            if {"-v", "--version", "-V"} & set(flags) or not stdin:
                return ANY
            program = stdin
        judge_text(shell, name, program)
        for value in flags.get("-M", []):
            judge_text(shell, name, f"use {value}")
        read_all(shell, words)
        if name in ("perl", "ruby") and any(re.match(r"-\w*i", flag) for flag in flags):
            for word in words:
                for place in places(shell, word):
                    world.write(place, None, existing=True)
                    world.emit(Kind.WRITE, place, existing=True, content=program)
        return ANY


def judge_text(shell: Shell, language: str, program: str) -> None:
    """A program in a language without a model: unresolved where it can reach anything.

    A read that names its file in full is known, whatever else the language can do.
    """
    plain = _PLAIN_READ.get(language)
    if plain is not None and known(program):
        for path in re.findall(plain, program):
            shell.world.read(path)
        program = re.sub(plain, "(0)", program)
    if not known(program) or re.search(_CAPABLE.get(language, r"\w"), program):
        shell.world.emit(Kind.UNRESOLVED, "code")
    for path in _PATH.findall(" " + program):
        if known(path):
            shell.world.emit(Kind.READ, shell.world.path(path))


for _name, _texts, _valued in (
    ("perl", ("-e", "-E"), ("-F", "-I", "-M", "-0")),
    ("ruby", ("-e",), ("-I", "-r")),
    ("php", ("-r",), ("-d", "-c")),
    ("lua", ("-e",), ("-l",)),
    ("Rscript", ("-e",), ()),
    ("R", ("-e",), ("-f",)),
    ("osascript", ("-e",), ()),
    ("tclsh", (), ()),
    ("gdb", ("-ex", "--eval-command"), ("-x",)),
    ("julia", ("-e",), ()),
    ("emacs", ("--eval", "--execute", "-eval"), ("-l", "--load", "-f", "--funcall")),
    ("guile", ("-c",), ()),
    ("octave", ("--eval",), ()),
    ("gnuplot", ("-e",), ()),
    ("sbcl", ("--eval",), ("--load",)),
    ("racket", ("-e",), ()),
    ("elixir", ("-e",), ("-r",)),
    ("erl", ("-eval",), ("-s",)),
    ("ghc", ("-e",), ()),
    ("groovy", ("-e",), ()),
    ("raku", ("-e",), ("-I", "-M")),
    ("pwsh", ("-c", "-Command", "-command"), ("-File",)),
    ("nu", ("-c",), ()),
):
    _interpreter(_name, _texts, _valued)
