"""What functions of the standard library, and of the usual others, do to files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from harness_adapters.guard.effects.holes import ANY, EITHER, choices, from_glob, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.evaluate import extend_path, iterated, join_paths
from harness_adapters.guard.effects.python.processes import NESTED, PROCESSES
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Handle,
    PathValue,
    Ref,
    Unknown,
    Value,
    either,
    is_dark,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program

Call: TypeAlias = "Callable[[Program, list[Value], dict[str, Value]], Value]"

READS = frozenset({"read", "load", "open", "loadtxt", "read_text", "read_bytes", "sendfile"})
WRITES = frozenset({"save", "savefig", "savez", "savetxt", "write_text", "write_bytes", "dump"})
_OPENERS = re.compile(
    r"open|(?:codecs|io|gzip|bz2|lzma|os|tokenize|aiofiles|fileinput|zipfile|tarfile|wave|shelve"
    r"|dbm|Image|PIL\.Image|h5py|netCDF4|sqlite3)\.(?:open|FileIO|File|ZipFile|TarFile|input"
    r"|FileInput|GzipFile|BZ2File|LZMAFile|connect|is_tarfile|is_zipfile|open_code|Dataset)"
    r"|ZipFile|FileIO"
)
_READERS = re.compile(
    r"(?:pandas|pd|polars|pl|dask\.dataframe|dd|geopandas|pyarrow\.\w+|pq|cudf)\.(?:read_\w+|scan_\w+)"
    r"|(?:numpy|np)\.(?:load|loadtxt|genfromtxt|fromfile|memmap)|joblib\.load|torch\.load"
    r"|linecache\.(?:getline|getlines|checkcache|updatecache)|os\.(?:readlink|getxattr)"
    r"|(?:yaml|toml|tomllib|dotenv)\.(?:load_dotenv|dotenv_values|load)|load_dotenv"
    r"|cv2\.imread|imageio\.imread|mmap\.mmap|configparser\.read|inspect\.getsource\w*"
    r"|py_compile\.compile|ast\.literal_eval_file|netrc\.netrc|mimetypes\.read_mime_types"
)
_LISTERS = re.compile(
    r"os\.(?:listdir|scandir|walk|fwalk|stat|lstat|access)|os\.path\.(?:exists|isfile|isdir|getsize|getmtime|islink)"
)
_WRITERS = re.compile(
    r"(?:numpy|np)\.(?:save|savez|savetxt|savez_compressed)|joblib\.dump|torch\.save"
    r"|(?:plt|matplotlib\.pyplot)\.savefig|os\.(?:mkdir|makedirs|mkfifo|mknod|truncate|utime)"
    r"|os\.(?:chmod|chown|lchown|chflags|setxattr)|cv2\.imwrite|shutil\.chown"
)
_DELETERS = re.compile(r"os\.(?:remove|unlink|rmdir|removedirs)|shutil\.rmtree")
_COPIERS = re.compile(r"shutil\.(?:copy\w*|move)|os\.(?:rename|renames|replace|link|symlink)")
_CODE = re.compile(
    r"(?:pickle|dill|cloudpickle|marshal|shelve|jsonpickle|yaml)\.(?:loads|unsafe_load|decode)"
    r"|types\.(?:CodeType|FunctionType)|ctypes\.\w*.*|cffi\..*|importlib\.(?:util|machinery)\..*"
)
_NETWORK = re.compile(
    r"(?:requests|httpx)\.(?:get|post|put|patch|delete|head|options|request|stream)"
    r"|urllib\.request\.(?:urlopen|urlretrieve|Request)|urlopen|urlretrieve"
    r"|http\.client\.HTTPS?Connection|aiohttp\.request|socket\.(?:create_connection|gethostby\w+|getaddrinfo)"
    r"|(?:ftplib\.FTP\w*|smtplib\.SMTP\w*|telnetlib\.Telnet|xmlrpc\.client\.ServerProxy|websocket\.\w+)"
)


def _texts(value: Value) -> list[str]:
    return choices(text_of(value))


def _first(args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        return args[0]
    for name in ("file", "path", "name", "filename", "src", "io", "filepath_or_buffer", "url"):
        if name in kwargs:
            return kwargs[name]
    return None


def effect_of(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Effects of a function by its dotted name; NotImplemented where it isn't known."""
    handler = _EXACT.get(name) or PROCESSES.get(name)
    if handler is not None:
        return handler(program, args, kwargs)
    first = _first(args, kwargs)
    world = program.world
    if name.split(".", 1)[0] in NESTED and "." in name:
        world.emit(Kind.UNRESOLVED, "shape")
        return DARK
    if _OPENERS.fullmatch(name):
        return opened(program, first, _mode(name, args, kwargs))
    if _READERS.fullmatch(name):
        if isinstance(first, Ref):
            return DATA
        return Handle("".join(_read(program, first)))
    if _LISTERS.fullmatch(name):
        recursive = name in ("os.walk", "os.fwalk")
        for text in _texts(first if first is not None else "."):
            world.emit(Kind.LIST, world.path(text), recursive=recursive)
        return _listed(program, name, text_of(first if first is not None else "."))
    if _WRITERS.fullmatch(name):
        for text in _texts(first):
            existing = not name.startswith(("os.mk", "os.make"))
            world.emit(Kind.WRITE, world.path(text), existing=existing and name.startswith("os."))
        return None
    if _DELETERS.fullmatch(name):
        for text in _texts(first):
            world.delete(text, recursive=name == "shutil.rmtree")
        return None
    if _COPIERS.fullmatch(name) or name == "shutil.copytree":
        _copied(program, name, args, kwargs)
        return None
    if _CODE.fullmatch(name):
        world.emit(Kind.UNRESOLVED, "code")
        return DARK
    if _NETWORK.fullmatch(name):
        return _fetched(program, name, args, kwargs)
    return NotImplemented


def _mode(name: str, args: list[Value], kwargs: dict[str, Value]) -> str:
    mode = kwargs.get("mode", args[1] if len(args) > 1 else "r")
    if name == "os.open":
        return "w" if len(args) > 1 and "O_RDONLY" not in str(args[1]) else "r"
    if name in ("sqlite3.connect", "h5py.File", "shelve.open", "dbm.open"):
        return "a" if name == "sqlite3.connect" else text_of(mode)
    if "fileinput" in name:
        return "a" if kwargs.get("inplace") else "r"
    text = text_of(mode)
    return text if known(text) else "r+"


def _read(program: Program, path: Value) -> list[str]:
    if isinstance(path, Handle):
        return [path.text]
    if isinstance(path, int):
        return [ANY]
    if isinstance(path, (list, tuple)):
        return [text for each in path for text in _read(program, each)]
    texts = []
    for text in _texts(path):
        if re.match(r"(?:https?|ftp|s3|gs)://", text):
            from harness_adapters.guard.effects.shell.commands.table import host_of

            program.world.emit(Kind.NETWORK, host_of(text))
            continue
        for place in program.world.globbed(program.world.path(text)):
            texts.append(program.world.read(place))
    return texts


def opened(program: Program, path: Value, mode: str) -> Handle:
    """An open file: read at once, or noted as written."""
    if isinstance(path, Handle):
        return path
    if isinstance(path, int):
        return Handle(ANY)
    text = ""
    if not re.search(r"[wax]", mode) or "+" in mode:
        text = "".join(_read(program, path))
    if re.search(r"[wax+]", mode):
        for each in _texts(path):
            program.world.write(each, "" if "w" in mode else None, append="a" in mode)
    name = text_of(path)
    return Handle(text, "" if EITHER in name else name)


def handle_method(
    program: Program, owner: Handle, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of an open file or of a process's output."""
    world = program.world
    if name in ("write", "writelines", "writestr", "writetext") and args:
        content = (
            "".join(text_of(each) for each in iterated(program, args[0]))
            if (name == "writelines")
            else text_of(args[0])
        )
        if owner.path:
            path = world.path(owner.path)
            before = world.content(path) or ""
            if not world.deferred:
                world._files[path] = before + content
            world.emit(Kind.WRITE, path, content=content if known(content) else None)
        return len(content)
    if name in ("readlines", "splitlines"):
        return [line + "\n" for line in owner.text.split("\n") if line]
    if name in ("split",):
        return owner.text.split()
    if name in ("read", "readline", "decode", "strip", "getvalue", "text", "json", "rstrip"):
        return owner.text if name != "json" else DATA
    if name in ("communicate",):
        return (owner.text, "")
    if name in ("extractall", "extract"):
        target = text_of(kwargs.get("path", args[0] if args else "."))
        world.emit(Kind.WRITE, world.path(target) + "/" + ANY)
        return None
    if name in ("execute", "executescript", "executemany") and args:
        from harness_adapters.guard.effects.shell.commands.filters import _SQL_FILE

        for found in _SQL_FILE.findall(text_of(args[0])):
            world.read(found)
        return DATA
    if name in ("add", "__enter__", "cursor", "makefile"):
        if name == "add" and args:
            world.emit(Kind.READ, world.path(text_of(args[0])), recursive=True)
        return owner
    return DATA


def path_method(
    program: Program, owner: PathValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of a pathlib path."""
    world = program.world
    text = owner.text
    if name in ("read_text", "read_bytes"):
        return "".join(_read(program, text))
    if name in ("write_text", "write_bytes"):
        content = text_of(args[0] if args else kwargs.get("data", ""))
        for each in _texts(text):
            world.write(each, content)
        return None
    if name == "open":
        return opened(program, owner, text_of(args[0] if args else kwargs.get("mode", "r")))
    if name in ("unlink", "rmdir"):
        for each in _texts(text):
            world.delete(each)
        return None
    if name in ("mkdir", "touch", "chmod"):
        for each in _texts(text):
            world.emit(Kind.WRITE, world.path(each), existing=name == "chmod")
        return None
    if name in ("rename", "replace", "copy", "move", "copy_into", "move_into"):
        verb = "shutil.copy" if name.startswith("copy") else "os.rename"
        _copied(program, verb, [owner, *args], kwargs)
        return args[0] if args else DATA
    if name in ("symlink_to", "hardlink_to", "link_to"):
        _copied(program, "os.symlink", [*args[:1], owner], kwargs)
        return None
    if name in ("glob", "rglob", "iterdir", "walk"):
        pattern = text_of(args[0]) if args else "<all>"
        deep = name in ("rglob", "walk")
        base = text.rstrip("/")
        spelled = f"{base}/{ANY}/{from_glob(pattern)}" if deep else f"{base}/{from_glob(pattern)}"
        for each in _texts(text):
            world.emit(Kind.LIST, world.path(each), recursive=deep or "**" in pattern)
        return [PathValue(place) for place in world.globbed(world.path(spelled))]
    if name in ("exists", "is_file", "is_dir", "stat", "lstat", "is_symlink"):
        for each in _texts(text):
            world.emit(Kind.LIST, world.path(each))
        return DATA
    if name in ("joinpath", "__truediv__"):
        return join_paths(owner, *args)
    if name in ("resolve", "absolute", "readlink"):
        return PathValue(text_of(either([world.path(each) for each in _texts(text)])))
    if name == "expanduser":
        return PathValue(world.path(text)) if text.startswith("~") else owner
    if name in ("with_name", "with_suffix", "with_stem") and args:
        base, _, last = text.rpartition("/")
        stem = last.rpartition(".")[0] or last
        new = text_of(args[0])
        made = new if name == "with_name" else stem + new
        return PathValue(f"{base}/{made}" if base else made)
    if name in ("as_posix", "__str__", "__fspath__"):
        return text
    if name in ("relative_to",):
        return PathValue(ANY if not known(text) else text)
    return DATA


def _listed(program: Program, name: str, base: str) -> Value:
    inside = base.rstrip("/") + "/" + ANY
    if name in ("os.walk", "os.fwalk"):
        return [(inside, [ANY], [ANY]), (base, [ANY], [ANY])]
    if name == "os.scandir":
        return [PathValue(inside)]
    return [ANY] if name == "os.listdir" else DATA


def _copied(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> None:
    world = program.world
    source = args[0] if args else kwargs.get("src")
    target = args[1] if len(args) > 1 else kwargs.get("dst", kwargs.get("target"))
    tree = name in ("shutil.copytree", "shutil.move") or name.startswith("os.rename")
    for text in _texts(source):
        for goal in _texts(target):
            if name == "os.symlink":
                place = world.path(goal)
                world.emit(Kind.READ, world.path(text, place.rpartition("/")[0]), recursive=True)
                world.emit(Kind.WRITE, place)
                world.symlink(text, place)
                continue
            origin = world.path(text)
            content = world.read(text, recursive=tree)
            place = world.write(goal, content if known(content) else None)
            last = text.rstrip("/").rsplit("/", 1)[-1]
            if "." not in place.rsplit("/", 1)[-1]:
                world.write(f"{place}/{last}", content if known(content) else None)
            world.move(origin, place)
            if tree and not known(content):
                world.emit(Kind.WRITE, place, recursive=True)
            if name not in ("os.link",) and not name.startswith("shutil.copy"):
                world.delete(origin, recursive=True)


def _fetched(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.shell.commands.table import host_of

    place = 1 if name.endswith((".request", ".stream")) and len(args) > 1 else 0
    address = args[place] if place < len(args) else _first([], kwargs)
    if isinstance(address, (tuple, list)) and address:
        address = address[0]
    for text in _texts(address):
        if text.startswith("file:"):
            program.world.read(text)
        else:
            program.world.emit(Kind.NETWORK, host_of(text) if text else ANY)
    if name.endswith("urlretrieve") and len(args) > 1:
        program.world.write(text_of(args[1]), None)
    return Handle(ANY)


def _glob(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found: list[Value] = []
    root = text_of(kwargs.get("root_dir", "")) or ""
    for text in _texts(args[0] if args else ANY):
        pattern = from_glob(f"{root}/{text}" if root else text)
        path = program.world.path(pattern)
        found += program.world.globbed(path) if program.world.tree else [pattern]
    return found


def _path(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return join_paths(*args) if args else PathValue(".")


def _joined(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return join_paths(*args).text if args else ""


def _absolute(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return either([program.world.path(text) for text in _texts(args[0] if args else ".")])


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
    from harness_adapters.guard.effects.python.evaluate import import_module

    name = text_of(args[0]) if args else OPAQUE_NAME
    if not known(name):
        program.world.emit(Kind.UNRESOLVED, "code")
        return DARK
    import_module(program, name)
    return Ref(name)


OPAQUE_NAME = "\ufdd1"


def _getattr(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.evaluate import attribute

    if len(args) < 2:
        return DATA
    found = [
        attribute(program, args[0], name) if known(name) else _unknown_member(args[0], name)
        for name in _texts(args[1])
    ]
    return either(found)


def _unknown_member(owner: Value, name: str) -> Value:
    return DARK if isinstance(owner, (Ref, Unknown)) and (owner != DATA or is_dark(name)) else DATA


def _setattr(program: Program, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.python.evaluate import set_attribute

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
        return program.world.scope.home
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


def _any_first(value: Any) -> Call:
    return lambda program, args, kwargs: value


_EXACT: dict[str, Call] = {
    **dict.fromkeys(("glob.glob", "glob.iglob"), _glob),
    **dict.fromkeys(("pathlib.Path", "Path", "pathlib.PurePosixPath", "py.path.local"), _path),
    "os.path.join": _joined,
    **dict.fromkeys(("os.path.abspath", "os.path.realpath"), _absolute),
    **dict.fromkeys(("os.chdir", "contextlib.chdir"), _chdir),
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
    "print": _printed,
    "sys.stdout.write": _printed,
    **dict.fromkeys(("os.environ.get", "os.getenv", "os.environ.pop"), _environment),
    "os.environ.setdefault": _putenv,
    "os.putenv": _putenv,
    **dict.fromkeys(("sys.path.insert", "sys.path.append", "site.addsitedir"), _sys_path),
    **dict.fromkeys(("os.environ.items", "os.environ.values"), _environ_dump),
    "tempfile.mkdtemp": _any_first("/tmp/" + ANY),
    "tempfile.gettempdir": _any_first("/tmp"),
    "tempfile.mktemp": _any_first("/tmp/" + ANY),
    "tempfile.NamedTemporaryFile": _any_first(Handle("", "/tmp/" + ANY)),
    "tempfile.TemporaryDirectory": _any_first("/tmp/" + ANY),
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
