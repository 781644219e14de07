"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field

from starlette.types import Receive, Scope, Send

from harness_adapters.proxy import chat, messages
from harness_adapters.proxy.answer import Answer, Refusal
from harness_adapters.proxy.connection import Outgoing
from harness_adapters.proxy.judging import AnswerBench, Judging
from harness_adapters.proxy.relay import Exchange, Limits
from harness_adapters.proxy.routes import SESSION_HEADER, Route, route_of, to_upstream
from harness_adapters.proxy.upstream import Upstream
from harness_adapters.text import visible

MAX_REQUEST_BYTES = 64 << 20
MAX_SESSION_NAME = 100


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """One proxy: where to, what to write in the log, and its limits."""

    upstream: str
    """Address of the model server, with or without `/v1` at its end."""
    session: str = "proxy"
    """In the log, for requests without an `x-guard-session` header."""
    harness: str = ""
    workdir: str = "/"
    """Where the agent works; policies resolve paths from there."""
    limits: Limits = field(default_factory=Limits)
    read_seconds: float = 600.0
    """Without a byte from the upstream."""
    keepalive_seconds: float = 15.0
    """A stream that is held for longer gets a comment, so that no client takes it for dead."""


class Proxy:
    """Use as an async context manager, which holds the connections to the upstream."""

    def __init__(self, settings: ProxySettings, judging: Judging) -> None:
        """Raises ConfigError when the upstream is no HTTP address."""
        self.settings = settings
        self.judging = judging
        self.upstream = Upstream(settings.upstream, settings.read_seconds)
        self._turns = itertools.count()

    async def __aenter__(self) -> Proxy:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.upstream.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        # Every client of Anthropic's format names its version, on any path.
        wire = messages if b"anthropic-version" in headers else chat
        answer = Answer(send, wire.write_error)
        route = route_of(scope["method"], scope["path"])
        try:
            if route is Route.REFUSED:
                raise Refusal(501, "this route can't be judged; use chat completions or messages")
            body = await _body(receive)
        except Refusal as refusal:
            await answer.refuse(refusal)
            return
        if body is None:
            return
        bench = self._bench(headers.get(SESSION_HEADER, b""))
        exchange = Exchange(route, bench, self.settings.limits, answer)
        await self._watch(exchange, self._request(scope, body), receive)

    async def _watch(self, exchange: Exchange, request: Outgoing, receive: Receive) -> None:
        """Run an exchange until it ends or the client is gone."""
        loop, seconds = asyncio.get_running_loop(), self.settings.keepalive_seconds
        work = asyncio.current_task()
        assert work is not None  # a server runs each request in a task
        left = False
        timer = loop.call_later(seconds, lambda: keep_alive())

        def leave(_: object) -> None:
            nonlocal left
            left = True
            work.cancel()

        def keep_alive() -> None:
            nonlocal timer
            if exchange.through is not None and exchange.through.holding:
                exchange.answer.keep_alive(seconds)
            timer = loop.call_later(seconds, keep_alive)

        gone = asyncio.ensure_future(_disconnected(receive))
        gone.add_done_callback(leave)
        try:
            await exchange.run(self.upstream, request)
        except asyncio.CancelledError:
            exchange.client_left()
            if not left:
                raise
            work.uncancel()
        finally:
            timer.cancel()
            gone.remove_done_callback(leave)
            gone.cancel()
            exchange.answer.stop()

    def _bench(self, session: bytes) -> AnswerBench:
        named = visible(session.decode("latin-1"), one_line=True)[:MAX_SESSION_NAME]
        return AnswerBench(
            judging=self.judging,
            session=named or self.settings.session,
            harness=self.settings.harness,
            turn=next(self._turns),
            workdir=self.settings.workdir,
        )

    def _request(self, scope: Scope, body: bytes) -> Outgoing:
        path = scope.get("raw_path") or scope["path"].encode()
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        headers = to_upstream(scope["headers"], self.upstream.host)
        return self.upstream.request(scope["method"], path + query, headers, body)


async def _body(receive: Receive) -> bytes | None:
    """The request's body; None when the client left before its end. Raises Refusal."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > MAX_REQUEST_BYTES:
            raise Refusal(413, f"the request is larger than {MAX_REQUEST_BYTES} bytes")
        if not message.get("more_body", False):
            return bytes(body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
