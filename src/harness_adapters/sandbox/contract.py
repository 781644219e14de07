"""What a sandbox is to the rest of the package: the protocol and the values that flow."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from harness_adapters.sandbox.trees import remove_tree

Serve: TypeAlias = Callable[[socket.socket], Awaitable[Callable[[], Awaitable[None]]]]
"""Starts serving on a listening socket; returns the coroutine function that stops it."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path shown inside the sandbox."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use."""

    memory_mb: int = 2048
    """Of all processes together, with what they write to memory-backed file systems."""
    processes: int = 256
    """Processes and threads at one time."""
    file_mb: int = 256
    """The largest single file."""
    temporary_mb: int = 256
    """Of /tmp and of /dev/shm, each; gone after every command."""
    output_bytes: int = 8 << 20
    """Of stdout and stderr each; the rest is dropped and `truncated` is set."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the commands of one sandbox have used so far; None where no cgroup counts it."""

    cpu_seconds: float | None = None
    peak_mb: float | None = None
    oom: bool = False
    """The kernel killed a process because the sandbox was out of memory."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What one command left behind."""

    returncode: int
    """128 + the signal's number for a command that a signal ended, 137 for a timeout."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dead session's working directory, sanitised: a read-only layer for the verifier.

    The layer outlives its sandbox and belongs to whoever called `freeze`: `discard` it, or use
    it as a context manager.
    """

    layer: Path
    files: int
    bytes: int
    removed: int
    """Entries dropped: escaping links, FIFOs, sockets, devices."""

    def discard(self) -> None:
        """Delete the layer; a second call does nothing."""
        remove_tree(self.layer)

    def __enter__(self) -> Frozen:
        return self

    def __exit__(self, *exc: object) -> None:
        self.discard()


class Sandbox(Protocol):
    """One isolated workspace. Use as `async with`; leaving it kills everything and removes it."""

    async def exec(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        timeout: float,
        stdin: bytes = b"",
        serve: Serve | None = None,
        port: int = 8080,
        network: bool = False,
    ) -> ExecResult:
        """Run one command in the working directory and wait for it and all its children.

        With `serve`, a listening socket on 127.0.0.1:`port` inside the sandbox's own network
        namespace is handed to it before the command starts; there is no other network.
        """
        ...

    def freeze(self) -> Frozen:
        """Kill every process, then sanitise what the session wrote. The sandbox is spent."""
        ...
