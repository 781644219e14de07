"""Functions of the standard library that each need a word of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from harness_adapters.guard.effects.holes import ANY, OPAQUE, STAR, from_glob, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.joining import join_paths
from harness_adapters.guard.effects.python.members import extend_path
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Handle,
    Partial,
    PathValue,
    Ref,
    Template,
    Unknown,
    Value,
    either,
    is_dark,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program
from harness_adapters.guard.effects.python.objects import handle_method, texts_of

Call: TypeAlias = "Callable[[Program, list[Value], dict[str, Value]], Value]"


def _glob(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found: list[Value] = []
    root = text_of(kwargs.get("root_dir", "")) or ""
    for text in texts_of(args[0] if args else ANY):
        pattern = from_glob(f"{root}/{text}" if root else text)
        path = program.world.path(pattern)
        found += program.world.globbed(path) if program.world.tree else [pattern]
    return found


def _path(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return join_paths(*args) if args else PathValue(".")


def _joined(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return join_paths(*args).text if args else ""


def _absolute(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return either([program.world.path(text) for text in texts_of(args[0] if args else ".")])


def _chdir(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    program.world.cwd = program.world.path(text_of(args[0] if args else "."))
    return None


def _site(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return "/usr/lib/python3/site-packages"


def _user_site(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return program.world.scope.home + "/.local/lib/python3/site-packages"


def _expanded(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    text = text_of(args[0]) if args else ""
    text = text.replace("${HOME}", "~").replace("$HOME", "~")
    return program.world.path(text) if text.startswith("~") else text


def _import(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.members import import_module

    name = text_of(args[0]) if args else OPAQUE
    if not known(name):
        program.world.emit(Kind.UNRESOLVED, "code")
        return DARK
    import_module(program, name)
    return Ref(name)


def _getattr(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.members import attribute

    if len(args) < 2:
        return DATA
    found = [
        attribute(program, args[0], name) if known(name) else _unknown_member(args[0], name)
        for name in texts_of(args[1])
    ]
    return either(found)


def _unknown_member(owner: Value, name: str) -> Value:
    return DARK if isinstance(owner, (Ref, Unknown)) and (owner != DATA or is_dark(name)) else DATA


def _setattr(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.members import set_attribute

    if len(args) == 3:
        set_attribute(program, args[0], text_of(args[1]), args[2])
    return None


def _vars(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Ref(args[0].name + ".__dict__") if args and isinstance(args[0], Ref) else DATA


def _frames(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    program.world.emit(Kind.HIJACK, "frames")
    return DATA


def _printed(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for value in args:
        if value == Ref("os.environ"):
            program.world.emit(Kind.ENVIRONMENT, "<all>")
    text = text_of(kwargs.get("sep", " ")).join(text_of(v) for v in args)
    target = kwargs.get("file")
    if isinstance(target, Handle):
        handle_method(program, target, "write", [text + "\n"], {})
    elif target is None:
        program.out.append(text + text_of(kwargs.get("end", "\n")))
    return None


def _environment(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name = text_of(args[0]) if args else "<all>"
    program.world.emit(Kind.ENVIRONMENT, name)
    default = args[1] if len(args) > 1 else None
    if name == "HOME":
        return program.world.home
    got = program.world.env.get(name)
    return got if got is not None else (either([ANY, default]) if default else DATA)


def _putenv(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) > 1:
        program.world.emit(Kind.ENVIRONMENT, f"{text_of(args[0])}={text_of(args[1])}")
    return None


def _sys_path(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    extend_path(program, [a for a in args if not isinstance(a, int)])
    return None


def _environ_dump(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    program.world.emit(Kind.ENVIRONMENT, "<all>")
    return DATA


def _unpacked(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    world = program.world
    world.read(text_of(args[0] if args else kwargs.get("filename", ANY)))
    target = args[1] if len(args) > 1 else kwargs.get("extract_dir", ".")
    world.emit(Kind.WRITE, world.path(text_of(target or ".")) + "/" + ANY)
    return None


def _any_first(value: Any) -> Call:
    return lambda program, args, kwargs: value


EXACT: dict[str, Call] = {
    **dict.fromkeys(("glob.glob", "glob.iglob"), _glob),
    **dict.fromkeys(("pathlib.Path", "Path", "pathlib.PurePosixPath", "py.path.local"), _path),
    "os.path.join": _joined,
    **dict.fromkeys(("os.path.abspath", "os.path.realpath"), _absolute),
    **dict.fromkeys(("os.chdir", "contextlib.chdir"), _chdir),
    "shutil.unpack_archive": _unpacked,
    "os.getppid": _any_first(OPAQUE),
    "os.getcwd": lambda program, args, kwargs: program.world.cwd,
    "pathlib.Path.cwd": lambda program, args, kwargs: PathValue(program.world.cwd),
    "Path.cwd": lambda program, args, kwargs: PathValue(program.world.cwd),
    "pathlib.Path.home": lambda program, args, kwargs: PathValue(program.world.scope.home),
    "Path.home": lambda program, args, kwargs: PathValue(program.world.scope.home),
    **dict.fromkeys(("os.path.expanduser", "os.path.expandvars"), _expanded),
    "site.getusersitepackages": _user_site,
    "site.getusersitedir": _user_site,
    "site.getsitepackages": lambda p, a, k: ["/usr/lib/python3/site-packages"],
    **dict.fromkeys(("sysconfig.get_path", "sysconfig.get_paths"), _site),
    **dict.fromkeys(("__import__", "importlib.import_module", "importlib.__import__"), _import),
    "getattr": _getattr,
    "object.__getattribute__": _getattr,
    "setattr": _setattr,
    "vars": _vars,
    **dict.fromkeys(("inspect.stack", "inspect.trace", "inspect.getouterframes"), _frames),
    **dict.fromkeys(("gc.get_objects", "gc.get_referrers", "gc.get_referents"), _frames),
    **dict.fromkeys(("sys.settrace", "sys.setprofile", "threading.settrace"), _frames),
    **dict.fromkeys(("print", "pprint.pprint", "pprint"), _printed),
    "sys.stdout.write": _printed,
    **dict.fromkeys(("os.environ.get", "os.getenv", "os.environ.pop"), _environment),
    "os.environ.setdefault": _putenv,
    "os.environ.copy": _any_first(Ref("os.environ")),
    "os.putenv": _putenv,
    **dict.fromkeys(("sys.path.insert", "sys.path.append", "site.addsitedir"), _sys_path),
    **dict.fromkeys(("os.environ.items", "os.environ.values"), _environ_dump),
    "tempfile.mkdtemp": _any_first("/tmp/tmp" + STAR),
    "tempfile.gettempdir": _any_first("/tmp"),
    "tempfile.mktemp": _any_first("/tmp/tmp" + STAR),
    "tempfile.NamedTemporaryFile": _any_first(Handle("", "/tmp/tmp" + STAR)),
    "tempfile.TemporaryDirectory": _any_first("/tmp/tmp" + STAR),
    "functools.partial": lambda p, a, k: Partial(a[0], tuple(a[1:]), k) if a else DATA,
    "string.Template": lambda p, a, k: Template(text_of(a[0]) if a else ANY),
    "io.StringIO": lambda p, a, k: Handle(text_of(a[0]) if a else ""),
    "io.BytesIO": lambda p, a, k: Handle(text_of(a[0]) if a else ""),
    "StringIO": lambda p, a, k: Handle(text_of(a[0]) if a else ""),
    "os.fdopen": lambda p, a, k: Handle(ANY),
    "os.read": lambda p, a, k: text_of(a[0]) if a else ANY,
    "json.load": lambda p, a, k: DATA,
    "json.dump": lambda p, a, k: (
        handle_method(p, a[1], "write", [ANY], {})
        if len(a) > 1 and isinstance(a[1], Handle)
        else None
    ),
    "input": lambda p, a, k: p.stdin.split("\n")[0] if p.stdin else ANY,
}
