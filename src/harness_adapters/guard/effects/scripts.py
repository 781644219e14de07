"""Files that are run: by their first line, name or runner; and code that is only written yet."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from harness_adapters.guard.effects.holes import ANY, RESERVED, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.shell.words import unescaped
from harness_adapters.guard.effects.world import World

if TYPE_CHECKING:
    from harness_adapters.guard.effects.shell.run import Shell

_SHEBANG = re.compile(r"#!\s*(\S+)(?:[ \t]+(.*))?")
_BY_SUFFIX = {
    **dict.fromkeys((".py", ".pyw", ".pth", ".pyi", ".ipynb"), "python"),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh", ".bats", ".envrc"), "sh"),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".mts", ".jsx", ".tsx"), "node"),
    **dict.fromkeys((".pl", ".pm"), "perl"),
    **{".rb": "ruby", ".mk": "make", ".php": "php", ".lua": "lua", ".awk": "awk"},
}
_BY_NAME = {
    **dict.fromkeys(("Makefile", "makefile", "GNUmakefile"), "make"),
    **dict.fromkeys((".bashrc", ".profile", ".bash_profile", ".zshrc", ".envrc"), "sh"),
    "package.json": "npm",
}
_COMPILED = (
    *(".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".go", ".rs", ".java", ".kt", ".scala", ".swift"),
    *(".zig", ".cs", ".hs", ".d", ".nim", ".f90", ".s", ".S", ".asm"),
)
_BY_SUFFIX |= dict.fromkeys(_COMPILED, "compiled")
_LITERALS = re.compile(r'"((?:[^"\\\n]|\\.)*)"(?:\s*\+?\s*"(?:[^"\\\n]|\\.)*")*')
_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_COMPILED_RUNS = re.compile(
    r"\b(?:system|popen|exec\w*|spawn\w*|Command|getRuntime|ProcessBuilder)\b"
)
_COMPILED_CONNECTS = re.compile(
    r"\b(?:http\w*|net|connect|curl\w*|reqwest|ureq|HttpClient|URL|Socket|WebClient|fetch)\b"
)
_INCLUDES = re.compile(r'(?m)^\s*#\s*(?:include|embed)\s*["<]([^">\n]+)[">]')
_COMPILED_WRITES = re.compile(
    r"\b(?:fopen|ofstream|open|creat|unlink|remove\w*|rename|WriteFile|Create|OpenFile|write\w*"
    r"|File::create|FileWriter|FileOutputStream|truncate|symlink|link|chmod)\b"
)


def language(path: str, text: str, interpreter: str = "") -> str:
    """What a file is run by: `interpreter`, its first line, or its name; empty: not code."""
    from harness_adapters.guard.effects.shell.commands.table import canonical

    name = path.rsplit("/", 1)[-1]
    if interpreter and interpreter not in ("sh", "source"):
        return interpreter
    first = _SHEBANG.match(text)
    if first and interpreter != "source":
        words = [first[1], *(first[2] or "").split()]
        if canonical(words[0]) == "env":
            words = [w for w in words[1:] if "=" not in w and w[:1] != "-"] or ["sh"]
        if not interpreter:
            return canonical(words[0])
    if interpreter:
        return "sh"
    return _BY_NAME.get(name) or _BY_SUFFIX.get("." + name.rsplit(".", 1)[-1], "")


def run_script(shell: Shell, path: str, argv: list[str], stdin: str, interpreter: str) -> str:
    """Run a file. What the task came with and can't be read is taken as its own program."""
    world = shell.world
    world.emit(Kind.READ, path)
    world.emit(Kind.EXECUTE, path)
    text = world.content(path)
    if text is None:
        if world.written(path) or (not known(path) and path[:1] != "/"):
            world.emit(Kind.UNRESOLVED, "code")
        return ANY
    if not known(text):
        # Output of other programs that went into a file: only the run knows it.
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    return run_source(shell, path, text, argv, stdin, language(path, text, interpreter) or "sh")


def run_source(shell: Shell, path: str, text: str, argv: list[str], stdin: str, runner: str) -> str:
    """Run a text as a program of `runner`."""
    from harness_adapters.guard.effects.javascript import run_javascript
    from harness_adapters.guard.effects.python import run_python
    from harness_adapters.guard.effects.shell.commands.interpreters import judge_text
    from harness_adapters.guard.effects.shell.commands.table import COMMANDS
    from harness_adapters.guard.effects.shell.run import Shell as Another

    world = shell.world
    if runner in ("python", "pypy", "ipython"):
        return run_python(world, text, argv=[path, *argv], stdin=stdin, name=path)
    if runner in ("node", "nodejs", "bun", "deno", "tsx", "ts-node"):
        run_javascript(world, text)
        return ANY
    if runner == "make":
        run_makefile(shell, text, argv, {})
        return ANY
    if runner in ("sh", "bash", "dash", "zsh", "ksh", "ash", "source"):
        if not world.enter():
            return ANY
        before, cwd = dict(world.env), world.cwd
        out = ""
        texts = [text]
        if "\\n" in text and "\n" not in text.strip():
            texts.append(unescaped(text))
        for each in texts:
            out += Another(world, argv, name=path).run(each, stdin)
        world.env, world.cwd = before, cwd
        world.leave()
        return out
    if runner == "awk" or runner == "sed":
        return COMMANDS[runner](shell, [text, *argv], stdin)
    judge_text(shell, runner, text)
    return ANY


def written_code(world: World, path: str, text: str | None) -> None:
    """Effects that code would have once it is run, as deferred ones."""
    world.judged[path] = text
    if text and not known(text):
        # Put together from what is there and what is new.
        for part in RESERVED.split(text):
            if "\n" in part:
                inserted_code(world, path, part)
    if not text or not known(text):
        return
    runner = language(path, text)
    if not runner:
        return
    from harness_adapters.guard.effects.javascript import run_javascript
    from harness_adapters.guard.effects.python import run_python
    from harness_adapters.guard.effects.shell.commands.interpreters import judge_text
    from harness_adapters.guard.effects.shell.run import Shell

    before = world.deferred, world.cwd, dict(world.env)
    world.deferred = True
    try:
        shell = Shell(world, name=path)
        if runner == "python":
            run_python(world, text, name=path, library=True)
        elif runner == "make":
            run_makefile(shell, text, None, {})
        elif runner == "npm":
            run_npm_script(shell, None, [], text)
        elif runner in ("sh", "bash", "dash", "zsh", "ksh", "ash"):
            shell.run(text)
        elif runner in ("node", "bun", "deno", "tsx"):
            run_javascript(world, text, library=True)
        elif runner == "compiled":
            judge_compiled(shell, text)
        else:
            judge_text(shell, runner, text)
    finally:
        world.deferred, world.cwd, world.env = before


def judge_compiled(shell: Shell, text: str) -> None:
    """A program in a language that is compiled: what its texts name, by what it can do with it."""
    from harness_adapters.guard.effects.shell.commands.table import COMMANDS, network
    from harness_adapters.guard.effects.shell.parsing import parse

    world = shell.world
    bare = _LITERALS.sub('""', text)
    runs, writes = _COMPILED_RUNS.search(bare), _COMPILED_WRITES.search(bare)
    for path in _INCLUDES.findall(text):
        world.emit(Kind.READ, world.path(path))
    for match in _LITERALS.finditer(_INCLUDES.sub("", text)):
        literal = unescaped("".join(_LITERAL.findall(match[0])))
        if not known(literal) or len(literal) > 4096:
            continue
        if re.match(r"\w+://", literal) and _COMPILED_CONNECTS.search(bare):
            network(shell, literal)
        elif runs and literal.partition(" ")[0] in COMMANDS and parse(literal)[0] is not None:
            shell.run(literal)
        elif "/" in literal and not re.search(r"[\s%]", literal):
            world.emit(Kind.READ, world.path(literal))
            if writes and literal[-1] != "/":
                world.emit(Kind.WRITE, world.path(literal), existing=True)


def inserted_code(world: World, path: str, text: str) -> None:
    """Effects that lines put into a file would have once it is run, as deferred ones."""
    from harness_adapters.guard.effects.python import run_fragment

    if not known(text) or language(path, world.content(path) or "") != "python":
        return
    before, world.deferred = world.deferred, True
    try:
        run_fragment(world, text, path)
    finally:
        world.deferred = before


_RULE = re.compile(r"^([^\s:#=][^:=#]*?)\s*::?(?!=)\s*(.*)$")
_ASSIGN = re.compile(r"^\s*(?:export\s+|override\s+)?([\w.-]+)\s*(?:[:?+!]|::)?=\s*(.*)$")
_SHELL_CALL = re.compile(r"\$\(shell\s+((?:[^()]|\([^()]*\))*)\)")


def run_makefile(
    shell: Shell, text: str, targets: list[str] | None, assigned: dict[str, str]
) -> None:
    """Recipes of the targets and of what they depend on; of all targets where that is None."""
    if not known(text):
        shell.world.emit(Kind.UNRESOLVED, "code")
        return
    text = text.replace("\\\n", " ")
    variables: dict[str, str] = {}
    recipes: dict[str, list[str]] = {}
    needs: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("\t"):
            for name in current:
                recipes[name].append(line[1:])
            continue
        rule = None if line.lstrip().startswith("#") else _RULE.match(line)
        assign = _ASSIGN.match(line)
        if assign and (rule is None or "=" in line.split(":")[0] or ":=" in line):
            variables[assign[1]] = assign[2].strip()
        elif rule:
            depends, semicolon, recipe = rule[2].partition(";")
            current = rule[1].split()
            for name in current:
                recipes.setdefault(name, []).extend([recipe.strip()] if semicolon else [])
                needs.setdefault(name, []).extend(depends.split())
        else:
            for name in re.findall(r"^-?include\s+(.+)$", line):
                for file in name.split():
                    run_makefile(shell, known_text(shell.world.read(file)), targets, assigned)
            if line.strip():
                current = []
    variables |= assigned
    for value in variables.values():
        for call in _SHELL_CALL.findall(value):
            shell.run(_make_expanded(call, variables))
    everything = [name for name in recipes if not name.startswith(".")]
    wanted = everything if targets is None else (targets or everything[:1])
    done: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in done:
            continue
        done.add(name)
        pattern = name if name in recipes else next((r for r in recipes if "%" in r), "")
        wanted += needs.get(pattern, [])
        lines = [
            _make_expanded(r, variables | {"@": name}).lstrip("@-+")
            for r in recipes.get(pattern, [])
        ]
        for line in lines:
            cwd = shell.world.cwd
            shell.run(line.replace("$$", "$"))
            shell.world.cwd = cwd


def known_text(text: str) -> str:
    """`text`, or nothing where it isn't known: a file of the task's own."""
    return text if known(text) else ""


def _make_expanded(text: str, variables: dict[str, str]) -> str:
    def one(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[3]
        return variables.get(name, "")

    for _ in range(8):
        text = _SHELL_CALL.sub(r"$$(\1)", text)
        made = re.sub(r"(?<!\$)\$(?:\(([\w.@<^*-]+)\)|\{([\w.-]+)\}|([\w@<^*]))", one, text)
        if made == text:
            break
        text = made
    return text


def run_npm_script(shell: Shell, name: str | None, argv: list[str], text: str | None = None) -> str:
    """A script of package.json with its `pre` and `post`; all of them where `name` is None."""
    world = shell.world
    path = world.path("package.json")
    if text is None:
        if name and not name.startswith(("pre", "post")):
            world.emit(Kind.EXECUTE, path)
        text = world.content(path)
        if text is None:
            return ANY
    try:
        scripts = json.loads(text).get("scripts", {})
        if not isinstance(scripts, dict):
            return ANY
    except (ValueError, AttributeError, RecursionError):
        world.emit(Kind.UNRESOLVED, "code")
        return ANY
    names = list(scripts) if name is None else [f"pre{name}", name, f"post{name}"]
    for each in names:
        if isinstance(scripts.get(each), str):
            shell.run(scripts[each])
    return ANY
