"""`BwrapSandbox`: one workspace on bubblewrap, an overlay and a control group."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import command, seccomp
from harness_adapters.sandbox.cgroup import Cgroup, hierarchy
from harness_adapters.sandbox.contract import Bind, ExecResult, Frozen, Limits, Serve, Usage
from harness_adapters.sandbox.freeze import MAX_BYTES, MAX_DEPTH, MAX_FILES, sanitise
from harness_adapters.sandbox.listener import open_listener
from harness_adapters.sandbox.process import Process, complaint, to_the_end
from harness_adapters.sandbox.scratch import State, new_state, sandbox_uid, scratch_root
from harness_adapters.sandbox.trees import copy_tree, owned_by, reachable, remove_tree

_TIMED_OUT = 137


class BwrapSandbox:
    """One isolated workspace.

        async with BwrapSandbox([Path("environment/files")]) as box:
            result = await box.exec(["ls"], env={}, timeout=10)

    `lowers`, from the bottom to the top, are what `workdir` shows at first; they are never
    written. Commands run one at a time. Only the working directory, the home and writable binds
    live on from one command to the next; every process dies with its command.
    """

    def __init__(
        self,
        lowers: Sequence[Path],
        workdir: str = "/app",
        *,
        home_files: Mapping[str, str] | None = None,
        binds: Sequence[Bind] = (),
        limits: Limits | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._workdir = _inside(workdir)
        self._sources = list(lowers)
        self._home_files = dict(home_files or {})
        self._binds = list(binds)
        self._limits = limits or Limits()
        self._scratch = scratch
        self._lock = asyncio.Lock()
        self._process: Process | None = None
        self._group: Cgroup | None = None
        self._state: Path | None = None
        self._lowers: list[Path] = []
        self._prefix: list[str] = []
        self._bwrap = ""
        self._usage = Usage()
        self._spent = False
        self._disable_userns = Path("/proc/sys/user/max_user_namespaces").exists()

    @property
    def usage(self) -> Usage:
        """What all commands so far used; read at the end of each."""
        return self._usage

    async def __aenter__(self) -> BwrapSandbox:
        try:
            await to_the_end(asyncio.to_thread(self._prepare))
        except BaseException:
            await to_the_end(asyncio.to_thread(self._remove))
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._spent = True
        await to_the_end(self._close())

    async def _close(self) -> None:
        if self._process is not None:
            self._process.kill()
        async with self._lock:
            await asyncio.to_thread(self._remove)

    # ------------------------------------------------------------------ state on the host

    def _prepare(self) -> None:
        uid = sandbox_uid()
        root = scratch_root(self._scratch, uid)
        bwrap = command.reachable_bwrap(uid, root / "bin")
        state = new_state(root, State.BOX)
        try:
            self._state = state
            state.mkdir(mode=0o711)
            for name in ("upper", "work", "home"):
                (state / name).mkdir()
                os.chown(state / name, uid, uid)
            self._lowers = [
                self._stage(lower, number, uid) for number, lower in enumerate(self._sources)
            ]
            if not self._lowers:
                (state / "empty").mkdir()
                self._lowers = [state / "empty"]
            self._write_home(state / "home", uid)
            first = command.mount_first(self._place_binds(state, uid))
        except OSError as error:
            raise SandboxError(f"can't prepare a sandbox in {state}: {error}") from None
        # Without a group, the pid namespace and resource limits have to do.
        with contextlib.suppress(OSError):
            self._group = Cgroup(state.name, self._limits, hierarchy())
        grouped = self._group is not None and self._group.limits_memory
        limit = command.resource_limits(
            file_mb=self._limits.file_mb, data_mb=None if grouped else self._limits.memory_mb
        )
        self._prefix = [*first, *limit, *command.drop_privileges(uid)]
        self._bwrap = str(bwrap)

    def _stage(self, source: Path, number: int, uid: int) -> Path:
        """A lower layer whose files the sandbox may change: they must belong to its user."""
        source = source.absolute()
        if not source.is_dir():
            raise SandboxError(f"lower layer {source} is not a directory")
        if owned_by(source, uid):
            return source
        assert self._state is not None
        staged = self._state / f"lower{number}"
        copy_tree(source, staged, uid)
        return staged

    def _write_home(self, home: Path, uid: int) -> None:
        for name, text in self._home_files.items():
            relative = PurePosixPath(name)
            if relative.is_absolute() or ".." in relative.parts:
                raise SandboxError(f"home file {name!r} is not a path inside the home")
            place = home
            for part in relative.parts[:-1]:
                place /= part
                if not place.is_dir():
                    place.mkdir()
                    os.chown(place, uid, uid)
            place /= relative.name
            place.write_text(text)
            os.chown(place, uid, uid)

    def _place_binds(self, state: Path, uid: int) -> list[tuple[Path, Path]]:
        """Which sources root must mount elsewhere first, because `uid` can't reach them."""
        moved = []
        for number, bind in enumerate(self._binds):
            _inside(bind.target)
            source = bind.source.resolve()
            if not source.exists():
                raise SandboxError(f"bind source {bind.source} does not exist")
            if not reachable(source, uid):
                place = state / f"bind{number}"
                if source.is_dir():
                    place.mkdir()
                else:
                    place.touch()
                moved.append((source, place))
                source = place
            self._binds[number] = Bind(source, bind.target, bind.writable)
        return moved

    def _remove(self) -> None:
        if self._group is not None:
            self._group.kill()
            self._group.remove()
            self._group = None
        if self._state is not None:
            remove_tree(self._state)

    # ------------------------------------------------------------------ commands

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
        """Run one command in the working directory; all its children die with it.

        `env` is laid over a minimal environment (PATH, HOME, LANG, TERM, ...). `network` shares
        the host's network and is for the project's own tools only: an agent's sandbox that has
        it can reach every service of the host. Raises SandboxError when the command could not be
        started; a command that fails or times out is a result.
        """
        if network and serve is not None:
            raise SandboxError("serve needs the sandbox's own network namespace: drop network")
        if not argv or any("\0" in text for text in (*argv, *env, *env.values())):
            raise SandboxError("a command needs a name, and no argument may hold a NUL")
        async with self._lock:
            if self._spent or self._state is None:
                raise SandboxError("this sandbox is not open, or was frozen: make another")
            while True:
                try:
                    return await self._run(argv, env, timeout, stdin, serve, port, network)
                except _UserNamespaceLimitError:
                    self._disable_userns = False

    async def _run(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        timeout: float,
        stdin: bytes,
        serve: Serve | None,
        port: int,
        network: bool,
    ) -> ExecResult:
        process = Process.spawn(
            self._prefix,
            self._bwrap,
            self._options(env, network),
            argv,
            files=command.ETC_FILES,
            filter_program=seccomp.program(),
            stdin=stdin,
            output_bytes=self._limits.output_bytes,
        )
        self._process = process
        cleanup = contextlib.AsyncExitStack()
        try:
            pid = await process.ready()
            await asyncio.to_thread(self._confine, pid)
            if serve is not None:
                listener = await open_listener(pid, port)
                cleanup.callback(listener.close)
                cleanup.push_async_callback(await serve(listener))
            started = time.monotonic()
            process.release()
            timed_out = await process.wait(timeout)
            seconds = time.monotonic() - started
        except SandboxError as error:
            if self._disable_userns and "user namespaces" in str(error):
                raise _UserNamespaceLimitError from error
            raise
        finally:
            self._process = None
            end = await to_the_end(self._end(process, cleanup))
        if not timed_out and not end.ran:
            raise SandboxError(complaint(end.stderr))
        truncated = process.stdout.truncated or process.stderr.truncated
        code = _TIMED_OUT if timed_out else end.returncode
        return ExecResult(code, end.stdout, end.stderr, timed_out, truncated, seconds)

    async def _end(self, process: Process, cleanup: contextlib.AsyncExitStack) -> _End:
        """Kill all that is left, wait until it is dead, stop serving, close everything."""
        try:
            async with cleanup:
                process.kill()
                if self._group is not None:
                    self._group.kill()
                returncode, stdout, stderr = await process.gone()
                if self._group is not None:
                    self._usage = self._group.usage()
            return _End(returncode, stdout, stderr, process.ran())
        finally:
            process.close()

    def _options(self, env: Mapping[str, str], network: bool) -> list[str]:
        assert self._state is not None
        options = command.root_options(
            workdir=self._workdir,
            lowers=self._lowers,
            upper=self._state / "upper",
            work=self._state / "work",
            home=self._state / "home",
            binds=self._binds,
            temporary_mb=self._limits.temporary_mb,
            network=network,
            disable_userns=self._disable_userns,
        )
        result = list(options)
        for name, value in {**command.BASE_ENV, **env}.items():
            result += ["--setenv", name, value]
        return result

    def _confine(self, pid: int) -> None:
        """Put a held sandbox under its limits, before any untrusted instruction runs."""
        if self._group is not None:
            try:
                self._group.add(pid)
            except ProcessLookupError:
                return  # bwrap failed in its set-up, and will say why
            except OSError as error:
                raise SandboxError(f"can't limit a sandbox: {error}") from None
        if self._group is None or not self._group.limits_processes:
            # Only now: it counts the processes of the user namespace that was just made. Root
            # without CAP_SYS_RESOURCE may not, and `isolation` says so.
            most = (self._limits.processes, self._limits.processes)
            with contextlib.suppress(OSError, ValueError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, most)

    # ------------------------------------------------------------------ the end of a session

    def freeze(
        self,
        *,
        max_files: int = MAX_FILES,
        max_bytes: int = MAX_BYTES,
        max_depth: int = MAX_DEPTH,
    ) -> Frozen:
        """Kill every process, then sanitise what the session wrote. The sandbox is spent.

        Blocks for the time of one pass over the changed files. The layer outlives this sandbox;
        whoever calls this discards it. Raises WorkspaceError when what the session wrote is beyond
        these limits, which is the agent's own doing, and SandboxError when this came too early.
        """
        if self._spent or self._state is None:
            raise SandboxError("this sandbox is not open, or was frozen before")
        if self._lock.locked():
            raise SandboxError("a command is still running: await or cancel it, then freeze")
        self._spent = True
        if self._group is not None:
            self._group.kill()
        layer = new_state(self._state.parent, State.LAYER)
        counts = sanitise(
            self._state / "upper",
            self._workdir,
            lowers=self._lowers,
            max_files=max_files,
            max_bytes=max_bytes,
            max_depth=max_depth,
        )
        (self._state / "upper").rename(layer)
        return Frozen(layer, counts.files, counts.bytes, counts.removed)


@dataclass(frozen=True, slots=True)
class _End:
    returncode: int
    stdout: bytes
    stderr: bytes
    ran: bool
    """The command was started at all."""


class _UserNamespaceLimitError(Exception):
    """This kernel doesn't let bwrap forbid nested user namespaces."""


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if not pure.is_absolute() or ".." in pure.parts or pure == PurePosixPath("/"):
        raise SandboxError(f"{path!r} is not an absolute path below / without '..'")
    return str(pure)
