"""What functions of the standard library, and of the usual others, do to files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from harness_adapters.guard.effects.holes import ANY, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.processes import (
    NESTED,
    PROCESSES,
    repository_command,
)
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Archive,
    Handle,
    PathValue,
    Ref,
    Value,
    text_of,
)

if TYPE_CHECKING:
    from harness_adapters.guard.effects.python.interpret import Program
from harness_adapters.guard.effects.python.exact import EXACT
from harness_adapters.guard.effects.python.objects import copied, opened, read_paths, texts_of

Call: TypeAlias = "Callable[[Program, list[Value], dict[str, Value]], Value]"

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
    r"|types\.(?:CodeType|FunctionType)|ctypes\.(?!sizeof$|c_\w+$|(?:Structure|Union|Array|byref|create_\w+_buffer)$).*|cffi\..*|importlib\.(?:util|machinery)\..*"
)
_NETWORK = re.compile(
    r"(?:requests|httpx)\.(?:get|post|put|patch|delete|head|options|request|stream)"
    r"|urllib\.request\.(?:urlopen|urlretrieve|Request)|urlopen|urlretrieve"
    r"|http\.client\.HTTPS?Connection|aiohttp\.request|socket\.(?:create_connection|gethostby\w+|getaddrinfo)"
    r"|(?:ftplib\.FTP\w*|smtplib\.SMTP\w*|telnetlib\.Telnet|xmlrpc\.client\.ServerProxy|websocket\.\w+)"
)


def _first(args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        return args[0]
    for name in ("file", "path", "name", "filename", "src", "io", "filepath_or_buffer", "url"):
        if name in kwargs:
            return kwargs[name]
    return None


def effect_of(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Effects of a function by its dotted name; NotImplemented where it isn't known."""
    handler = EXACT.get(name) or PROCESSES.get(name)
    if handler is not None:
        return handler(program, args, kwargs)
    if name.startswith("git.Repo().git."):
        return repository_command(program, name.rsplit(".", 1)[-1], args)
    first = _first(args, kwargs)
    world = program.world
    if name.split(".", 1)[0] in NESTED and "." in name:
        world.emit(Kind.UNRESOLVED, "shape")
        return DARK
    if _OPENERS.fullmatch(name):
        handle = opened(program, first, _mode(name, args, kwargs))
        return Archive(handle.text, handle.path) if name.endswith("ZipFile") else handle
    if _READERS.fullmatch(name):
        if isinstance(first, Ref):
            return DATA
        return Handle("".join(read_paths(program, first)))
    if _LISTERS.fullmatch(name):
        recursive = name in ("os.walk", "os.fwalk")
        for text in texts_of(first if first is not None else "."):
            world.emit(Kind.LIST, world.path(text), recursive=recursive)
        return _listed(program, name, text_of(first if first is not None else "."))
    if _WRITERS.fullmatch(name):
        for text in texts_of(first):
            existing = not name.startswith(("os.mk", "os.make"))
            world.emit(Kind.WRITE, world.path(text), existing=existing and name.startswith("os."))
        return None
    if _DELETERS.fullmatch(name):
        for text in texts_of(first):
            world.delete(text, recursive=name == "shutil.rmtree")
        return None
    if _COPIERS.fullmatch(name) or name == "shutil.copytree":
        copied(program, name, args, kwargs)
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


def _listed(program: Program, name: str, base: str) -> Value:
    inside = base.rstrip("/") + "/" + ANY
    if name in ("os.walk", "os.fwalk"):
        return [(inside, [ANY], [ANY]), (base, [ANY], [ANY])]
    if name == "os.scandir":
        return [PathValue(inside)]
    return [ANY] if name == "os.listdir" else DATA


def _fetched(program: Program, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    from harness_adapters.guard.effects.shell.commands.table import host_of

    place = 1 if name.endswith((".request", ".stream")) and len(args) > 1 else 0
    address = args[place] if place < len(args) else _first([], kwargs)
    if isinstance(address, (tuple, list)) and address:
        address = address[0]
    for text in texts_of(address):
        if text.startswith("file:"):
            program.world.read(text)
        else:
            program.world.emit(Kind.NETWORK, host_of(text) if text else ANY)
    if name.endswith("urlretrieve") and len(args) > 1:
        program.world.write(text_of(args[1]), None)
    return Handle(ANY)
