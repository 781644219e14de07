"""What functions of JavaScript, of Node and of nested tools do."""

from __future__ import annotations

import base64
import binascii
import re
import urllib.parse

from harness_adapters.guard.effects.holes import ANY, degraded, known
from harness_adapters.guard.effects.kinds import Kind
from harness_adapters.guard.effects.python.joining import join_paths
from harness_adapters.guard.effects.python.values import (
    DARK,
    DATA,
    Ref,
    Unknown,
    Value,
    is_concrete,
    is_dark,
    text_of,
)
from harness_adapters.guard.effects.world import World

_READ = re.compile(
    r"(?:read|open|createReadStream|cp|copy|rename|link|symlink|access|cpSync|copyFile)\w*"
)
_WRITE = re.compile(r"(?:write|append|createWriteStream|mkdir|truncate|chmod|chown|utimes)\w*")
_DELETE = re.compile(r"(?:rm|unlink|rmdir|rename)\w*")
_LIST = re.compile(r"(?:readdir|stat|lstat|exists|opendir|watch|realpath)\w*")
_EVERYDAY = ("open", "copy", "rename", "write", "append", "access", "link", "rm")
"""Names of methods that files have in common with much else."""
_RUNS = re.compile(r"(?:exec|spawn|execFile)(?:Sync)?")
_OVER_ITEMS = ("map", "forEach", "flatMap", "filter", "find", "some", "every")
_KNOWN = ("console", "Math", "JSON", "Object", "Array", "String", "Number", "Promise", "path")


class Library:
    """The functions that a program calls; `Program` adds the language itself."""

    world: World
    out: list[str]
    """What the program prints."""

    def module(self, name: str) -> Value:
        """A module by its name."""
        raise NotImplementedError

    def each(self, function: Value, items: list[Value]) -> list[Value]:
        """A function called with each of the items."""
        raise NotImplementedError

    def run_text(self, text: str) -> None:
        """A text that is run as a program of its own."""
        raise NotImplementedError

    def external(self, name: str, args: list[Value]) -> Value:
        """A function of a module or of the language."""
        world, first = self.world, args[0] if args else ""
        text = text_of(first)
        root, _, last = name.rpartition(".")
        if name in ("require", "import"):
            return self.module(text)
        if root == "tools" or root.endswith(".tools"):
            return self.tool(last, args)
        if any(isinstance(arg, Ref) and arg.name == "tools" for arg in args):
            world.emit(Kind.UNRESOLVED, "code")
            return DARK
        if (
            name in ("eval", "Function", "AsyncFunction", "setTimeout", "setInterval")
            or root == "vm"
        ):
            if isinstance(first, str):
                self.run_text(text_of(args[-1]) if "Function" in name else text)
            elif name == "eval" or root == "vm" or is_dark(first):
                world.emit(Kind.UNRESOLVED, "code")
            return DATA
        if root == "fs":
            return self.file(last, args)
        if root == "child_process":
            return self.child(last, args)
        if root == "path" and last in ("join", "resolve"):
            base = [world.cwd] if last == "resolve" else []
            return join_paths(*base, *args).text
        if name in ("fetch", "http.get", "https.get", "http.request", "https.request"):
            from harness_adapters.guard.effects.shell.commands.table import host_of

            world.emit(Kind.NETWORK, host_of(text) if text else ANY)
            return DATA
        if root == "net":
            host = (
                args[1] if len(args) > 1 else first.get("host") if isinstance(first, dict) else ANY
            )
            world.emit(Kind.NETWORK, text_of(host))
            return DATA
        if name in ("console.log", "process.stdout.write"):
            end = "\n" if name == "console.log" else ""
            self.out.append(" ".join(map(text_of, args)) + end)
        if name in ("process.kill",):
            parent = isinstance(first, Ref) and first.name == "process.ppid"
            world.emit(Kind.PROCESS, "kill-parent" if parent else f"kill:{text}")
        if name in ("process.chdir",):
            world.cwd = world.path(text)
        if name in ("process.cwd",):
            return world.cwd
        if name in ("os.homedir",):
            return world.scope.home
        if name in ("Bun.file", "Deno.readTextFile", "Deno.readFile", "Deno.open"):
            return world.read(text)
        if not root.startswith(_KNOWN):
            self.elsewhere(last, args)
        if root in ("Reflect", "Proxy") or (root == "process" and last in ("binding", "dlopen")):
            world.emit(Kind.UNRESOLVED, "code")
            return DARK
        return self.worked_out(name, args)

    def elsewhere(self, name: str, args: list[Value]) -> None:
        """A function of a value that isn't known: by its name, and by paths that it is given."""
        on_file = _READ.fullmatch(name) or _WRITE.fullmatch(name) or _DELETE.fullmatch(name)
        if args and on_file and name not in _EVERYDAY:
            self.file(name, args)
        elif args and _RUNS.fullmatch(name) and isinstance(args[0], str):
            self.child(name, args)
        for arg in args:
            if isinstance(arg, str) and arg.startswith(("/", "~/", "../")) and "\n" not in arg:
                self.world.emit(Kind.READ, self.world.path(arg))

    def worked_out(self, name: str, args: list[Value]) -> Value:
        """Functions of the language that only make text."""
        first = args[0] if args else ""
        try:
            if name in ("String.fromCharCode", "String.fromCodePoint") and is_concrete(args):
                return "".join(map(chr, args))
            if name == "atob" and is_concrete(args):
                return base64.b64decode(first).decode(errors="replace")
            if name in ("decodeURIComponent", "unescape", "decodeURI") and is_concrete(args):
                return urllib.parse.unquote(first)
            if name in ("Buffer.from", "Buffer") and is_concrete(args):
                kind = args[1] if len(args) > 1 else ""
                if isinstance(first, list):
                    return bytes(first).decode(errors="replace")
                if kind == "base64":
                    return base64.b64decode(first).decode(errors="replace")
                return bytes.fromhex(first).decode(errors="replace") if kind == "hex" else first
        except (ValueError, TypeError, binascii.Error):
            return DARK
        if any(isinstance(arg, Ref) and arg.name == "process.env" for arg in args):
            self.world.emit(Kind.ENVIRONMENT, "<all>")
        if name in ("String", "JSON.stringify"):
            return text_of(first)
        if name in ("Promise.all", "Promise.race", "Promise.allSettled", "Array.from"):
            return first
        return DARK if any(is_dark(arg) for arg in args) else DATA

    def tool(self, name: str, args: list[Value]) -> Value:
        """A nested tool call: judged as if it crossed the wire."""
        from harness_adapters.guard.effects.tools import tool_effects

        arguments = args[0] if args else {}
        if not isinstance(arguments, dict) or not known(name):
            self.world.emit(Kind.UNRESOLVED, "shape")
            return DATA
        tool_effects(self.world, name, {key: _plain(value) for key, value in arguments.items()})
        return DATA

    def file(self, name: str, args: list[Value]) -> Value:
        """A function of `fs`."""
        world, path = self.world, text_of(args[0]) if args else ANY
        if _LIST.fullmatch(name):
            world.emit(Kind.LIST, world.path(path))
            return [DATA]
        if _WRITE.fullmatch(name):
            content = text_of(args[1]) if len(args) > 1 else ""
            world.write(path, content, append=name.startswith("append"))
            return DATA
        out = world.read(path, recursive=name.startswith("cp")) if _READ.fullmatch(name) else ANY
        if re.match(r"cp|copy|rename|link|symlink", name) and len(args) > 1:
            world.write(text_of(args[1]), out if known(out) else None)
        if name.startswith("symlink") and len(args) > 1:
            world.symlink(path, world.path(text_of(args[1])))
        if _DELETE.fullmatch(name):
            world.delete(path, recursive=name.startswith("rm"))
        if not (_READ.fullmatch(name) or _DELETE.fullmatch(name)):
            world.emit(Kind.READ, world.path(path))
        return out

    def child(self, name: str, args: list[Value]) -> Value:
        """A function of `child_process`."""
        from harness_adapters.guard.effects.shell.commands import run_command
        from harness_adapters.guard.effects.shell.run import Shell, run_shell

        world, cwd = self.world, self.world.cwd
        settings = next((arg for arg in args[1:] if isinstance(arg, dict)), {})
        if settings.get("cwd"):
            world.cwd = world.path(text_of(settings["cwd"]))
        words = args[1] if len(args) > 1 and isinstance(args[1], list) else []
        if name.startswith("exec") and not name.startswith("execFile"):
            out = run_shell(world, text_of(args[0]) if args else ANY)
        elif name == "fork":
            out = run_command(Shell(world), ["node", *map(text_of, args[:1])], "")
        else:
            argv = [text_of(word) for word in [*args[:1], *words]]
            out = (
                run_shell(world, " ".join(argv))
                if settings.get("shell")
                else run_command(Shell(world), argv or [ANY], "")
            )
        world.cwd = cwd
        return out

    def method(self, owner: Value, name: str, args: list[Value]) -> Value:
        """A method of a value."""
        if name == "join" and isinstance(owner, list):
            return (text_of(args[0]) if args else ",").join(map(text_of, owner))
        if name == "concat":
            return (
                owner + args[0]
                if isinstance(owner, list) and isinstance(args[0], list)
                else (text_of(owner) + "".join(map(text_of, args)))
            )
        if isinstance(owner, list):
            if name in _OVER_ITEMS and args:
                made = self.each(args[0], owner)
                return made if name in ("map", "flatMap") else owner if name == "filter" else DATA
            if name == "reverse":
                return owner[::-1]
            if name == "push":
                owner += args
            return DARK if is_dark(owner) or is_concrete(owner) else DATA
        if isinstance(owner, Unknown):
            self.elsewhere(name, args)
        if isinstance(owner, str):
            return self.text_method(owner, name, args)
        return DARK if is_dark(owner) else DATA

    @staticmethod
    def text_method(owner: str, name: str, args: list[Value]) -> Value:
        """A method of a string."""
        if not known(owner) or not is_concrete(args):
            return degraded(owner) or DATA
        try:
            if name == "split":
                return list(owner) if args[0] == "" else owner.split(args[0])
            if name in ("replace", "replaceAll"):
                return owner.replace(args[0], args[1], 1 if name == "replace" else -1)
            if name in ("slice", "substring"):
                return owner[slice(*args[:2])]
            plain = {"toString": owner, "trim": owner.strip(), "toLowerCase": owner.lower()}
            return plain.get(name, DARK)
        except (TypeError, IndexError):
            return DARK


def _plain(value: Value) -> object:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value if isinstance(value, (int, bool)) else text_of(value)
