"""Running a proxy: a listening socket, a server on it, an end in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from harness_adapters.errors import ConfigError
from harness_adapters.paths import guard_dir
from harness_adapters.proxy.app import Proxy, ProxySettings
from harness_adapters.proxy.judging import Judging
from harness_adapters.proxy.registry import Running, registered

GRACE_SECONDS = 10
"""For answers that are under way when the proxy is asked to end."""


class _Server(uvicorn.Server):
    """Leaves signals to `serve`: the process has clean-up of its own to do after them."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listening(host: str, port: int) -> socket.socket:
    """A socket that accepts; port 0 takes a free one. Raises ConfigError when it can't be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, port), family=family, backlog=1024)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"can't listen on {host}:{port}: {why}") from None
    # What it accepts inherits this; asyncio sets it only on sockets that it made itself. Without
    # it the second small write of an answer waits 40 ms for the client's delayed acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def address_of(sock: socket.socket) -> str:
    """Where a client reaches it, as `http://host:port`."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_until_stopped(
    settings: ProxySettings,
    judging: Judging,
    host: str,
    port: int,
    *,
    name: str | None,
    say: Callable[[str], None],
) -> None:
    """`run` on the fastest event loop that is installed."""
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(run(settings, judging, host, port, name=name, say=say))


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop's event loop where it is installed, asyncio's own otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    make: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return make


async def run(
    settings: ProxySettings,
    judging: Judging,
    host: str,
    port: int,
    *,
    name: str | None,
    say: Callable[[str], None],
) -> None:
    """A proxy from its socket to its end; `say` gets its address first. Raises ConfigError."""
    async with Proxy(settings, judging) as proxy:
        with listening(host, port) as sock:
            address = address_of(sock)
            running = Running(
                name=name or f"guard-{sock.getsockname()[1]}",
                pid=os.getpid(),
                address=address,
                upstream=str(proxy.upstream.url),
                log=str(judging.audit.path),
                log_only=judging.log_only,
                started=time.time(),
            )
            with registered(guard_dir(), running):
                say(address)
                say(f"name {running.name}, upstream {running.upstream}, log {running.log}")
                if judging.log_only:
                    say("log only: nothing is blocked")
                await serve(proxy, sock)


async def serve(app: ASGIApp, sock: socket.socket) -> None:
    """Answer until SIGINT or SIGTERM; a second one cuts what is under way."""
    server = server_of(app)

    def end() -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    try:
        await server.serve(sockets=[sock])
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def server_of(app: ASGIApp) -> uvicorn.Server:
    """A server that takes no signals; `should_exit` ends it."""
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        # The upstream's own are forwarded.
        server_header=False,
        date_header=False,
        # A tool may run for minutes between two requests of one connection.
        timeout_keep_alive=24 * 3600,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    return _Server(config)
