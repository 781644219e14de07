"""One bubblewrap process tree: started but held, released, and wholly dead at the end.

Built on pidfds rather than asyncio's subprocesses: the descriptor of the sandbox's init becomes
readable only after every process of its pid namespace is gone, whoever holds the pipes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import command

_T = TypeVar("_T")

_CHUNK = 1 << 16
_SETUP_SECONDS = 30.0
_DEATH_SECONDS = 30.0


class Output:
    """What one pipe delivers, up to a number of bytes; beyond them it is drained slowly."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.truncated = False
        self._descriptor = descriptor
        self._left = limit
        self._chunks: list[bytes] = []
        self._loop = asyncio.get_running_loop()
        self._later: asyncio.TimerHandle | None = None
        self._end: asyncio.Future[None] = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._loop.remove_reader(self._descriptor)
            if not self._end.done():
                self._end.set_result(None)
            return
        if len(data) > self._left:
            self.truncated = True
        self._chunks.append(data[: self._left])
        self._left -= min(self._left, len(data))
        if self.truncated:  # a flood must not keep the event loop busy
            self._loop.remove_reader(self._descriptor)
            self._later = self._loop.call_later(0.005, self._resume)

    def _resume(self) -> None:
        self._loop.add_reader(self._descriptor, self._read)

    async def finish(self) -> bytes:
        """All that was kept, once every writer is gone."""
        await self._end
        return b"".join(self._chunks)

    def close(self) -> None:
        """Stop reading and close the pipe."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)


class Process:
    """`spawn`, `ready`, `release`, `wait`, and on every path `end`."""

    def __init__(
        self, child: subprocess.Popen[bytes], status: int, gate: int, output_bytes: int
    ) -> None:
        self._child = child
        self._status = status
        self._gate = gate
        self._reported = b""
        self._init: int | None = None
        self._watch = os.pidfd_open(child.pid)
        assert child.stdout is not None and child.stderr is not None
        self.stdout = Output(os.dup(child.stdout.fileno()), output_bytes)
        self.stderr = Output(os.dup(child.stderr.fileno()), output_bytes)
        child.stdout.close()
        child.stderr.close()
        self._ended = False

    @classmethod
    def spawn(
        cls,
        prefix: Sequence[str],
        bwrap: str,
        options: Sequence[str],
        argv: Sequence[str],
        *,
        files: Mapping[str, str],
        filter_program: bytes | None,
        stdin: bytes,
        output_bytes: int,
    ) -> Process:
        """Start `bwrap` behind `prefix` on `argv`; the command itself is held back.

        Options travel in a memory file: nothing of the host shows in the sandbox's process list.
        """
        with contextlib.ExitStack() as stack:

            def lend(data: bytes) -> int:
                descriptor = _high(_memory_file(data))
                stack.callback(os.close, descriptor)
                return descriptor

            lent = []
            # Files first: the last of the options makes the root read-only.
            full: list[str] = []
            for target, text in files.items():
                lent.append(lend(text.encode()))
                full += ["--file", str(lent[-1]), target]
            full += options
            if filter_program is not None:
                lent.append(lend(filter_program))
                full += ["--seccomp", str(lent[-1])]
            status, status_write = os.pipe()
            status_write = _high(status_write)
            stack.callback(os.close, status_write)
            failed = stack.enter_context(contextlib.ExitStack())
            failed.callback(os.close, status)
            gate_read, gate = os.pipe()
            gate_read = _high(gate_read)
            stack.callback(os.close, gate_read)
            failed.callback(os.close, gate)
            bound = command.bound_to(os.getpid(), status=status_write, gate=gate_read)
            full += ["--json-status-fd", str(status_write), "--block-fd", str(gate_read)]
            lent.append(lend(b"".join(option.encode() + b"\0" for option in full)))
            source = lend(stdin) if stdin else subprocess.DEVNULL
            try:
                child = subprocess.Popen(
                    [*prefix, *bound, bwrap, "--args", str(lent[-1]), "--", *command.held(argv)],
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    pass_fds=[*lent, status_write, gate_read],
                    env={},
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                raise SandboxError(f"can't start {(*prefix, bwrap)[0]}: {error.strerror}") from None
            failed.pop_all()
            return cls(child, status, gate, output_bytes)

    async def ready(self) -> int:
        """The sandbox's init, as a pid of the host, once its namespaces exist."""
        os.set_blocking(self._status, False)
        try:
            async with asyncio.timeout(_SETUP_SECONDS):
                while b"\n" not in self._reported:
                    await _readable(self._status)
                    data = os.read(self._status, _CHUNK)
                    if not data:
                        raise SandboxError(await self._complaint())
                    self._reported += data
        except TimeoutError:
            raise SandboxError("bwrap did not start within 30 seconds") from None
        pid = int(json.loads(self._reported.split(b"\n", 1)[0])["child-pid"])
        try:
            self._init = os.pidfd_open(pid)
        except ProcessLookupError:
            raise SandboxError(await self._complaint()) from None
        if f"\nPPid:\t{self._child.pid}\n" not in Path(f"/proc/{pid}/status").read_text():
            os.close(self._init)
            self._init = None
            raise SandboxError(await self._complaint())
        return pid

    def release(self) -> None:
        """Let the command start."""
        with contextlib.suppress(BrokenPipeError):  # died in its set-up: `ran` will tell
            os.write(self._gate, b"x\n")  # one byte for bwrap, a line for the command's shell

    async def wait(self, timeout: float) -> bool:
        """Wait for the command to end; whether `timeout` seconds passed first."""
        try:
            async with asyncio.timeout(timeout):
                await _readable(self._watch)
        except TimeoutError:
            return True
        return False

    def kill(self) -> None:
        """Kill every process of the sandbox; returns at once.

        Its init kills all that it holds; until that one is known, what bwrap has started is in
        bwrap's own process group.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        if self._init is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)

    async def gone(self) -> tuple[int, bytes, bytes]:
        """Wait until every process of a killed sandbox is dead.

        Returns bwrap's return code, and what came on stdout and on stderr.
        """
        try:
            async with asyncio.timeout(_DEATH_SECONDS):
                await _readable(self._watch)
                if self._init is not None:
                    await _readable(self._init)
                stdout, stderr = await self.stdout.finish(), await self.stderr.finish()
        except TimeoutError:
            raise SandboxError("killed processes of a sandbox did not die in 30 seconds") from None
        return self._child.wait(), stdout, stderr

    def ran(self) -> bool:
        """Whether the command was started at all; valid once the tree is gone."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._status, _CHUNK):
                self._reported += data
        return b"started\n" in self._reported

    async def _complaint(self) -> str:
        self.kill()
        return complaint((await self.gone())[2])

    def close(self) -> None:
        """Close every descriptor. Only after `gone`: an open gate would let the command start."""
        if self._ended:
            return
        self._ended = True
        self.stdout.close()
        self.stderr.close()
        for descriptor in (self._status, self._gate, self._watch, self._init):
            if descriptor is not None:
                os.close(descriptor)


def complaint(stderr: bytes) -> str:
    """The one line in which bwrap, or what starts it, says why there is no sandbox."""
    lines = stderr.decode(errors="replace").strip().splitlines() or ["bwrap ended without a word"]
    return f"no sandbox: {lines[-1]}: run `harness-adapters doctor`"


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def settle() -> None:
        if not future.done():
            future.set_result(None)

    loop.add_reader(descriptor, settle)
    try:
        await future
    finally:
        loop.remove_reader(descriptor)


def _memory_file(data: bytes) -> int:
    """A sealed file in memory, positioned at its start."""
    descriptor = os.memfd_create("sandbox", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    return descriptor


def _high(descriptor: int) -> int:
    """The same above 9: below are the places that the starting shells use."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved


async def to_the_end(work: Awaitable[_T]) -> _T:
    """Await something that must finish even when this task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
        except BaseException:
            break
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
