"""What is known of the machine while a call is analysed: files, links, directory, variables."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness_adapters.guard.effects.holes import (
    ANY,
    EITHER,
    OPAQUE,
    alternatives,
    choices,
    known,
)
from harness_adapters.guard.effects.kinds import Effect, Kind
from harness_adapters.guard.effects.limits import capped
from harness_adapters.guard.effects.tree import Tree

MAX_STEPS = 50_000
"""Commands and statements of one call; beyond them the call is unresolved."""
MAX_SECONDS = 2.0
"""Of the processor: how long a call may be doesn't depend on what else the machine does."""
MAX_DEPTH = 24
"""Of code within code."""
MAX_REMEMBERED = 4 << 20
"""Characters of written files kept per session; a file beyond them is known as unknown."""

_ON_PATHS = frozenset({Kind.READ, Kind.WRITE, Kind.DELETE, Kind.EXECUTE})
_SEARCH_PATHS = frozenset({"PYTHONPATH", "NODE_PATH", "PERL5LIB", "RUBYLIB", "LD_LIBRARY_PATH"})
_RUN_AT_START = frozenset({"BASH_ENV", "ENV", "PYTHONSTARTUP", "LD_PRELOAD", "LD_AUDIT"})
_OTHERS_HOME = re.compile(r"~[a-z_][\w-]*")
_PROC_ROOT = re.compile(r"/proc/[^/]+/root(?=/|$)")
_OTHER_ROOT = re.compile(r"/proc/[\d*]+/root(?=/|$)")
_PROC_CWD = re.compile(r"/proc/(?:self|thread-self|\$\$|\d+)/cwd(?=/|$)")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a task is played. Hidden paths, hosts and the like are the policy's."""

    workdir: str = "/workspace"
    home: str = "/home/agent"
    keeps_cwd: bool | None = None
    """Whether a `cd` lasts to the next call; None: not known, so both are judged."""
    keeps_env: bool | None = None


@dataclass(slots=True)
class Session:
    """What earlier calls of a session left behind."""

    files: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """By path; None: written, with contents that aren't known."""
    links: dict[str, str] = field(default_factory=dict[str, str])
    gone: set[str] = field(default_factory=set[str])
    branches: set[str] = field(default_factory=set[str])
    """Git branches and tags that the session made."""
    cwd: str | None = None
    env: dict[str, str] = field(default_factory=dict[str, str])
    size: int = 0


class OutOfBudget(Exception):  # noqa: N818 - a signal, not an error of anything
    """The analysis took too long; the call is unresolved."""


class World:
    """One analysis: reads the session, collects effects, and changes the session on `commit`."""

    def __init__(
        self,
        scope: Scope,
        session: Session,
        tree: Tree | None,
        cwd: str,
        *,
        steps: int = MAX_STEPS,
    ) -> None:
        self.scope = scope
        self.session = session
        self.tree = tree
        self.cwd = cwd
        self.env: dict[str, str] = {}
        self.effects: dict[Effect, None] = {}
        self.deferred = False
        self.depth = 0
        self._steps = 0
        self._most_steps = steps
        self._deadline = time.thread_time() + MAX_SECONDS
        self._files: dict[str, str | None] = {}
        self._links: dict[str, str] = {}
        self._gone: set[str] = set()
        self.branches: set[str] = set()
        self.judged: dict[str, str | None] = {}
        """Contents of written files that need no look of their own: seen already, or copied."""

    def step(self) -> None:
        """Count one command or statement. Raises OutOfBudget."""
        self._steps += 1
        if self._steps > self._most_steps or (
            self._steps % 256 == 0 and time.thread_time() > self._deadline
        ):
            raise OutOfBudget

    def enter(self) -> bool:
        """Go one level into code within code; False, and an effect, when that is too deep."""
        if self.depth >= MAX_DEPTH:
            self.emit(Kind.UNRESOLVED, "budget")
            return False
        self.depth += 1
        return True

    def leave(self) -> None:
        """Come back from `enter`."""
        self.depth -= 1

    def emit(
        self,
        kind: Kind,
        target: str,
        *,
        recursive: bool = False,
        existing: bool = False,
        content: str | None = None,
    ) -> None:
        """Add an effect, once."""
        for each in choices(target):
            if each[:1] == OPAQUE and kind in _ON_PATHS:
                self.effects[Effect(Kind.UNRESOLVED, "path", deferred=self.deferred)] = None
            effect = Effect(kind, each, recursive, self.deferred, existing, content)
            self.effects[effect] = None

    def set_variable(self, name: str, value: str) -> None:
        """Effects of setting a variable: some name places whose files are read or run."""
        self.env[name] = capped(value)
        self.emit(Kind.ENVIRONMENT, f"{name}={value}")
        if name in _SEARCH_PATHS:
            for place in value.split(":"):
                if place and place not in (ANY, OPAQUE):
                    self.emit(Kind.READ, self.path(place).rstrip("/") + "/" + ANY)
        elif name in _RUN_AT_START:
            for place in value.replace(" ", ":").split(":"):
                if place:
                    self.emit(Kind.EXECUTE, self.path(place))

    # Paths

    @property
    def home(self) -> str:
        """Where `~` leads to: a program may say otherwise."""
        return self.env.get("HOME", self.scope.home)

    def path(self, text: str, cwd: str | None = None) -> str:
        """Absolute, normalised, links followed as far as they are known."""
        if EITHER in text:
            return alternatives([self.path(each, cwd) for each in choices(text)])
        if text.startswith("~"):
            head, slash, rest = text.partition("/")
            if head in ("~", "~+", "~agent"):
                home = self.cwd if head == "~+" else self.home
                text = home + slash + rest
            elif _OTHERS_HOME.fullmatch(head):
                # Root's home may be this one in a sandbox, any other lies who knows where.
                places = ["/root", self.home] if head == "~root" else [ANY]
                text = alternatives([place + slash + rest for place in places])
            if EITHER in text:
                return alternatives([self.path(each, cwd) for each in choices(text)])
        if text.startswith("file://"):
            text = text[7:]
        if not text.startswith("/"):
            if text[:1] in (ANY, OPAQUE):
                return text if len(text) == 1 else text[0] + posixpath.normpath("/" + text[1:])
            text = (self.cwd if cwd is None else cwd) + "/" + text
        if "/proc/" in text:
            if _OTHER_ROOT.search(text):
                self.emit(Kind.ESCAPE, "root of another process")
            text = _PROC_CWD.sub(self.cwd, _PROC_ROOT.sub("/", text))
        text = self._followed(text) if self._has_links() else posixpath.normpath(text)
        return "/" + text.lstrip("/") if text.startswith("//") else text

    def _has_links(self) -> bool:
        return bool(self._links or self.session.links or self.tree)

    def _followed(self, text: str) -> str:
        parts, done = text.split("/")[::-1], ""
        for _ in range(400):
            if not parts:
                break
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                done = posixpath.dirname(done).rstrip("/")
                continue
            place = f"{done}/{part}"
            target = self._link(place)
            if target is None:
                done = place
            elif target.startswith("/"):
                done = ""
                parts += target.split("/")[::-1]
            else:
                parts += target.split("/")[::-1]
        else:
            return OPAQUE
        return done or "/"

    def _link(self, place: str) -> str | None:
        for links in (self._links, self.session.links):
            if place in links:
                return links[place]
        if place in self._gone or place in self.session.gone or self.tree is None:
            return None
        return self.tree.link(place)

    # Files

    def content(self, path: str) -> str | None:
        """Text of a file, or None where it isn't known."""
        for files in (self._files, self.session.files):
            if path in files:
                return files[path]
        if self.tree is None or path in self._gone or path in self.session.gone:
            return None
        return self.tree.read(path) if known(path) else None

    def written(self, path: str) -> bool:
        """Whether this session wrote the file."""
        return path in self._files or path in self.session.files

    def exists(self, path: str) -> bool | None:
        """Whether something lies at `path`; None without a tree to ask."""
        if self.written(path):
            return True
        if path in self._gone or path in self.session.gone:
            return False
        return self.tree.exists(path) if self.tree is not None else None

    def existed(self, path: str) -> bool | None:
        """Whether the task came with it; None without a tree to ask."""
        return self.tree.exists(path) if self.tree is not None else None

    def read(self, text: str, *, recursive: bool = False) -> str:
        """Effect of reading a path; returns the text, ANY where it isn't known."""
        path = self.path(text)
        self.emit(Kind.READ, path, recursive=recursive)
        content = self.content(path)
        if content is None:
            return ANY
        return content

    def write(
        self, text: str, content: str | None, *, append: bool = False, existing: bool = False
    ) -> str:
        """Effect of writing a path; remembers the contents. Returns the resolved path."""
        path = self.path(text)
        if content is not None and not known(content):
            self.emit(Kind.WRITE, path, existing=existing or append)
        else:
            self.emit(Kind.WRITE, path, existing=existing or append, content=content)
        if append and content is not None:
            before = self.content(path)
            if before is None and (self.written(path) or self.exists(path) is not False):
                before = ANY if self.written(path) else ""
            content = (before or "") + content
        self.remember(path, content)
        return path

    def remember(self, path: str, content: str | None) -> None:
        """Contents of a resolved path from now on; code that isn't run yet changes nothing."""
        if not self.deferred:
            self._files[path] = content
            self._gone.discard(path)

    def delete(self, text: str, *, recursive: bool = False) -> None:
        """Effect of removing a path."""
        path = self.path(text)
        self.emit(Kind.DELETE, path, recursive=recursive)
        if not self.deferred:
            self._files.pop(path, None)
            self._links.pop(path, None)
            self._gone.add(path)

    def symlink(self, target: str, place: str) -> None:
        """Effect of making a link; what is read through it later counts as its target."""
        self._links[posixpath.normpath(posixpath.join(self.cwd, place))] = target

    def move(self, source: str, target: str) -> None:
        """Remember that contents went from one resolved path to another, directories too."""
        for path in self._below(source):
            place, content = target + path[len(source) :], self.content(path)
            self._files[place] = self.judged[place] = content

    def _below(self, source: str) -> Iterable[str]:
        names = {*self._files, *self.session.files}
        return [n for n in names if n == source or n.startswith(source + "/")] or (
            [source] if self.content(source) is not None else []
        )

    def globbed(self, pattern: str) -> list[str]:
        """Paths that fit a pattern with holes, where a tree can tell; else the pattern itself."""
        if self.tree is None or known(pattern) or ANY in pattern or OPAQUE in pattern:
            return [pattern]
        return self.tree.glob(pattern) or [pattern]

    def unjudged(self) -> list[tuple[str, str]]:
        """Files that this call wrote in another way than by a tool for it, with their contents."""
        return [
            (path, text)
            for path, text in self._files.items()
            if text and self.judged.get(path) != text
        ]

    def commit(self) -> None:
        """Let the session remember what this call did."""
        session = self.session
        for path, content in self._files.items():
            session.gone.discard(path)
            session.size += len(content or "")
            session.files[path] = content if session.size <= MAX_REMEMBERED else None
        for path in self._gone:
            session.files.pop(path, None)
            session.links.pop(path, None)
            session.gone.add(path)
        session.links.update(self._links)
        session.branches |= self.branches
        session.cwd = self.cwd
        session.env = self.env
