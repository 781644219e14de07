"""What a call can do: the closed set of effects that rules speak of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """One kind of effect. What `Effect.target` holds differs by kind."""

    READ = "read"
    """Contents of a path."""
    LIST = "list"
    """Names and sizes below a path, no contents."""
    WRITE = "write"
    """A path is created, changed, or gets other permissions."""
    DELETE = "delete"
    """A path is removed or moved away."""
    EXECUTE = "execute"
    """A path is run as a program, a script, a module or a build file."""
    NETWORK = "network"
    """A host, as a name or an address, without port."""
    PACKAGE = "package"
    """`MANAGER:NAME` from a package index, through its own client."""
    GIT = "git"
    """`future`, `objects`, `reflog`, `remote`, `internals`, or `rewind`."""
    ENVIRONMENT = "environment"
    """`NAME=VALUE` that is set, `NAME` that is unset or shown, `<all>` for all of it shown."""
    PROCESS = "process"
    """`kill:PID`, `kill-all`, or `kill-name:PATTERN`."""
    SCHEDULE = "schedule"
    """Work put off until after the session: the name of the scheduler."""
    ESCAPE = "escape"
    """Leaving the sandbox's namespaces, root or privileges: the name of the means."""
    HIJACK = "hijack"
    """Code or settings that bend a test runner: `frames`, `exit`, `equal`, `patch`, `select`."""
    UNRESOLVED = "unresolved"
    """`code`, `path`, `host`, `shape`, `syntax` or `budget`: what could not be worked out."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a call would do."""

    kind: Kind
    target: str
    """Absolute and normalised where it is a path; may hold the holes of `holes.py`."""
    recursive: bool = False
    """All below the path, too."""
    deferred: bool = False
    """Not now, but whenever the code that this call writes is run."""
    existing: bool = False
    """A write that changes what is there already, so that the path exists."""
    content: str | None = None
    """What is written, where it is known."""
