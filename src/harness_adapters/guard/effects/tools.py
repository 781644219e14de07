"""From a tool call to its effects: each tool of the known agents, others by their arguments."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from harness_adapters.guard.effects.holes import ANY, from_glob, known
from harness_adapters.guard.effects.javascript import run_javascript
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.patches import apply_v4a
from harness_adapters.guard.effects.python import parse, run_python
from harness_adapters.guard.effects.scripts import inserted_code, language, written_code
from harness_adapters.guard.effects.shell.commands.table import host_of
from harness_adapters.guard.effects.shell.run import run_shell
from harness_adapters.guard.effects.world import World

Arguments: TypeAlias = Mapping[str, object]
Tool: TypeAlias = Callable[[World, Arguments], "str | None"]

_PATHS = (
    "path",
    "filePath",
    "file_path",
    "filename",
    "file",
    "notebook_path",
    "target_file",
    "dir",
)
_OLD = ("oldString", "old_string", "oldText", "old_text", "old_str", "old")
_NEW = ("newString", "new_string", "newText", "new_text", "new_str", "new_source", "new")
_CONTENTS = ("content", "contents", "text", "data", "file_text")


def _get(arguments: Arguments, *names: str) -> str:
    for name in names:
        value = arguments.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def _shape(world: World) -> None:
    world.emit(Kind.UNRESOLVED, "shape")


def _shell(world: World, arguments: Arguments) -> str:
    command = arguments.get("command", arguments.get("cmd", arguments.get("script")))
    if isinstance(command, (list, tuple)):
        import shlex

        command = shlex.join(str(word) for word in command)
    if not isinstance(command, str):
        _shape(world)
        return ANY
    directory = _get(arguments, "workdir", "cwd", "working_directory", "directory")
    if directory:
        world.cwd = world.path(directory)
    for name, value in _mapping(arguments.get("env")).items():
        world.env[name] = str(value)
        world.emit(Kind.ENVIRONMENT, f"{name}={value}")
    return run_shell(world, command)


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _read(world: World, arguments: Arguments) -> str:
    paths = arguments.get("paths") or arguments.get("files")
    names = [str(p) for p in paths] if isinstance(paths, list) else [_get(arguments, *_PATHS)]
    if not any(names):
        _shape(world)
    return "".join(world.read(name) for name in names if name)


def _write(world: World, arguments: Arguments) -> None:
    path = _get(arguments, *_PATHS)
    content = _get(arguments, *_CONTENTS)
    if not path:
        _shape(world)
        return
    place = world.write(path, content)
    written_code(world, place, content)


def _edit(world: World, arguments: Arguments) -> None:
    path = _get(arguments, *_PATHS)
    edits = arguments.get("edits")
    changes = [arguments] if not isinstance(edits, list) else [e for e in edits if _mapping(e)]
    if isinstance(edits, str):
        try:
            changes = [_mapping(item) for item in json.loads(edits)]
        except (ValueError, TypeError):
            _shape(world)
    if not path or not changes:
        _shape(world)
        return
    place = world.path(path)
    text = world.content(place)
    for change in changes:
        old, new = _get(change, *_OLD), _get(change, *_NEW)
        world.emit(Kind.WRITE, place, existing=True, content=new)
        if language(place, text or "") == "python":
            inserted_code(world, place, new)
        elif text is None:
            written_code(world, place, new)
        if text is not None:
            text = text.replace(old, new, 1) if old and old in text else text + "\n" + new
    if text is not None:
        world.remember(place, text)
        written_code(world, place, text)


def _patch(world: World, arguments: Arguments) -> None:
    text = _get(arguments, "patchText", "patch", "input", "diff")
    if text:
        apply_v4a(world, text)
    elif _get(arguments, *_PATHS):
        _edit(world, arguments)
    else:
        _shape(world)


def _grep(world: World, arguments: Arguments) -> None:
    base = world.path(_get(arguments, "path", "directory") or ".")
    pattern = _get(arguments, "glob", "include", "file_glob", "filePattern", "include_pattern")
    names_only = _get(arguments, "target") == "files"
    kind = Kind.LIST if names_only else Kind.READ
    if pattern and not names_only:
        glob = from_glob(pattern)
        spelled = world.path(glob, base) if "/" in glob else f"{base.rstrip('/')}/{ANY}/{glob}"
        world.emit(kind, spelled)
        world.emit(Kind.LIST, base, recursive=True)
    else:
        world.emit(kind, base, recursive=True)


def _find(world: World, arguments: Arguments) -> None:
    base = world.path(_get(arguments, "path", "directory") or ".")
    pattern = _get(arguments, "pattern", "glob", "query")
    world.emit(Kind.LIST, base, recursive=True)
    if pattern.startswith(("/", "~", "..")) or "/../" in pattern:
        world.emit(Kind.LIST, world.path(from_glob(pattern), base))


def _list(world: World, arguments: Arguments) -> None:
    world.emit(Kind.LIST, world.path(_get(arguments, *_PATHS) or "."))


def _fetch(world: World, arguments: Arguments) -> None:
    found = [v for k in ("url", "uri", "urls", "href") for v in _many(arguments.get(k))]
    for address in found:
        if address.startswith("file:") or address.startswith("/"):
            world.read(re.sub(r"^file:(//[^/]*)?", "", address))
        else:
            world.emit(Kind.NETWORK, host_of(address))
    if not found:
        world.emit(Kind.NETWORK, ANY)


def _many(value: object) -> list[str]:
    return (
        [value]
        if isinstance(value, str)
        else [str(v) for v in value]
        if isinstance(value, list)
        else []
    )


def _search_web(world: World, arguments: Arguments) -> None:
    world.emit(Kind.NETWORK, ANY)


def _python(world: World, arguments: Arguments) -> str:
    code = arguments.get("code", arguments.get("script", arguments.get("source")))
    if not isinstance(code, str):
        _shape(world)
        return ANY
    return run_python(world, code, argv=["script.py"], stdin="")


def _javascript(world: World, arguments: Arguments) -> None:
    code = arguments.get("code", arguments.get("script", arguments.get("source")))
    if isinstance(code, str):
        run_javascript(world, code)
    else:
        _shape(world)


def _process(world: World, arguments: Arguments) -> None:
    """Text typed into a running program: a shell, an interpreter, or an answer to a question."""
    text = _get(arguments, "data", "input", "text", "stdin", "chars", "keys")
    action = _get(arguments, "action")
    if not text or action in ("list", "poll", "log", "wait", "kill", "close"):
        return
    readable = False
    if parse(text) is not None:
        run_python(world, text)
        readable = True
    before = dict(world.effects)
    run_shell(world, text)
    if any(
        e.kind is Kind.UNRESOLVED and e.target == "syntax" for e in world.effects if e not in before
    ):
        if readable:
            world.effects = before
        run_javascript(world, text)


def _schedule(world: World, arguments: Arguments) -> None:
    if _get(arguments, "action") not in ("list", "status", "show"):
        world.emit(Kind.SCHEDULE, "cronjob")


def _nothing(world: World, arguments: Arguments) -> None:
    """Notes, questions, lists of things to do, other agents: their calls are judged themselves."""


def _picture(world: World, arguments: Arguments) -> None:
    for name in ("image_url", "image", "path", "url", "image_path"):
        for value in _many(arguments.get(name)):
            if "://" in value and not value.startswith("file:"):
                world.emit(Kind.NETWORK, host_of(value))
            else:
                world.read(value)


def _computer(world: World, arguments: Arguments) -> None:
    """A browser or a desktop: where it goes isn't known."""
    if _many(arguments.get("url")):
        _fetch(world, arguments)
    else:
        world.emit(Kind.NETWORK, ANY)


def _anything(world: World, arguments: Arguments) -> None:
    """A tool that isn't known: by the names of its arguments; none that says anything: refused."""
    understood = not arguments
    if any(isinstance(arguments.get(n), (str, list)) for n in ("command", "cmd", "script")):
        _shell(world, arguments)
        understood = True
    code = _get(arguments, "code", "source", "javascript", "python")
    if code:
        run_python(world, code) if parse(code) is not None else run_javascript(world, code)
        understood = True
    if any(k in arguments for k in ("url", "urls", "uri", "href")):
        _fetch(world, arguments)
        understood = True
    if _get(arguments, "patch", "patchText", "diff"):
        _patch(world, arguments)
        understood = True
    for name in (*_PATHS, "paths", "files", "source", "destination", "from", "to", "src", "dst"):
        for value in _many(arguments.get(name)):
            world.read(value)
            text = _get(arguments, *_CONTENTS, *_NEW)
            place = world.write(value, text or None)
            written_code(world, place, text)
            understood = True
    if not understood:
        _shape(world)


TOOLS: dict[str, Tool] = {
    **dict.fromkeys(
        ("bash", "terminal", "shell", "run_command", "exec_command", "local_shell"), _shell
    ),
    **dict.fromkeys(("read", "read_file", "cat", "view", "notebookread", "readfile"), _read),
    **dict.fromkeys(("write", "write_file", "create_file", "writefile"), _write),
    **dict.fromkeys(("edit", "multiedit", "notebookedit", "str_replace", "edit_file"), _edit),
    **dict.fromkeys(("patch", "apply_patch", "applypatch"), _patch),
    **dict.fromkeys(("grep", "search_files", "search", "codesearch"), _grep),
    **dict.fromkeys(("find", "glob"), _find),
    **dict.fromkeys(("ls", "list", "list_dir", "list_files"), _list),
    **dict.fromkeys(("webfetch", "web_extract", "web_fetch", "fetch", "web_crawl"), _fetch),
    **dict.fromkeys(("websearch", "web_search", "image_generate", "text_to_speech"), _search_web),
    **dict.fromkeys(("execute_code", "python", "ipython", "run_python"), _python),
    **dict.fromkeys(("codemode", "code_mode"), _javascript),
    **dict.fromkeys(("process", "write_stdin"), _process),
    "cronjob": _schedule,
    "schedule": _schedule,
    "vision_analyze": _picture,
    **dict.fromkeys(
        ("todo", "todowrite", "todoread", "todo_write", "todo_read", "think"), _nothing
    ),
    **dict.fromkeys(("clarify", "question", "askuserquestion", "exitplanmode", "memory"), _nothing),
    **dict.fromkeys(
        (
            "finish",
            "submit",
            "task",
            "agent",
            "delegate_task",
            "skill",
            "skill_view",
            "skills_list",
        ),
        _nothing,
    ),
    **dict.fromkeys(("session_search", "bashoutput", "killshell", "killbash", "invalid"), _nothing),
    **dict.fromkeys(
        ("taskoutput", "taskstop", "toolsearch", "enterplanmode", "lsp", "update_plan"), _nothing
    ),
    **dict.fromkeys(("taskcreate", "taskupdate", "tasklist", "taskget", "slashcommand"), _nothing),
    "skill_manage": lambda world, arguments: world.emit(Kind.SCHEDULE, "skill"),
    "send_message": _search_web,
    **dict.fromkeys(("browser_navigate", "browser", "computer", "computer_use"), _computer),
}
"""By name in lower case."""


def tool_named(name: str) -> Tool:
    """The tool that a name means. Agents mend misspelt names; so does this."""
    plain = name.strip().lower()
    tool = TOOLS.get(plain)
    if tool is not None:
        return tool
    spelled = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip()).lower()
    spelled = (
        re.sub(r"[-\s.:/]+", "_", spelled).removesuffix("_tool").removesuffix("tool").strip("_")
    )
    for each in (spelled, spelled.replace("_", "")):
        if each in TOOLS:
            return TOOLS[each]
    close = difflib.get_close_matches(spelled, TOOLS, n=1, cutoff=0.7)
    return TOOLS[close[0]] if close else _anything


def tool_effects(world: World, name: str, arguments: Arguments) -> str | None:
    """Effects of one call go into `world`; returns its output where that is known."""
    if not known(name):
        _shape(world)
        return None
    if not world.enter():
        return None
    try:
        out = tool_named(name)(world, arguments)
        if world.depth == 1:
            for path, text in world.unjudged():
                written_code(world, path, text)
        return out
    finally:
        world.leave()
