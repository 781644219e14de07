"""A listening socket inside a sandbox's network namespace, made by the host.

No process of ours lives in the sandbox, and a connection on this socket can only come from it: the
listener is the session's identity.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import subprocess
import sys
import threading
from pathlib import Path

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import netns


async def open_listener(pid: int, port: int) -> socket.socket:
    """Listen on 127.0.0.1:`port` in the network namespace of process `pid`.

    A namespace belongs to a thread: the one that enters it here ends right after.
    """
    loop = asyncio.get_running_loop()
    made: asyncio.Future[socket.socket] = loop.create_future()

    def settle(listener: socket.socket | None, error: BaseException | None) -> None:
        if made.cancelled():
            if listener is not None:
                listener.close()
        elif listener is not None:
            made.set_result(listener)
        else:
            made.set_exception(error or RuntimeError("no listener"))

    def work() -> None:
        listener, failure = None, None
        try:
            listener = _listen(pid, port)
        except (OSError, SandboxError) as error:
            failure = error
        try:
            loop.call_soon_threadsafe(settle, listener, failure)
        except RuntimeError:  # the loop ended meanwhile
            if listener is not None:
                listener.close()

    threading.Thread(target=work, name=f"listener-{pid}", daemon=True).start()
    try:
        return await made
    except OSError as error:
        raise SandboxError(f"can't listen inside the sandbox: {error}") from None


def _listen(pid: int, port: int) -> socket.socket:
    try:
        return netns.listen(pid, port)
    except PermissionError:
        return _listen_by_helper(pid, port)


def _listen_by_helper(pid: int, port: int) -> socket.socket:
    """For an ordinary user, who must enter the user namespace first: a process of its own.

    The kernel lets only a process with a single thread change its user namespace.
    """
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10.0)
        script = str(Path(netns.__file__))
        argv = [sys.executable, "-I", "-S", script, str(pid), str(port), str(theirs.fileno())]
        helper = subprocess.Popen(
            argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        theirs.close()
        try:
            _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        except TimeoutError:
            descriptors = []
        finally:
            with contextlib.suppress(ProcessLookupError):
                helper.kill()
            _, message = helper.communicate()
        if not descriptors:
            reason = message.decode(errors="replace").strip().splitlines()[-1:] or ["timed out"]
            raise SandboxError(f"can't listen inside the sandbox: {reason[0]}")
        return socket.socket(fileno=descriptors[0])
