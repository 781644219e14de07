"""The proxy as an ASGI application."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from urllib.request import getproxies, proxy_bypass

import httpx
from starlette.types import Receive, Scope, Send

from harness_adapters.errors import ConfigError
from harness_adapters.proxy import chat, messages
from harness_adapters.proxy.answer import Answer, Refusal
from harness_adapters.proxy.judging import AnswerBench, Judging
from harness_adapters.proxy.relay import Exchange, Limits
from harness_adapters.proxy.routes import SESSION_HEADER, Route, route_of, to_upstream
from harness_adapters.text import visible

LOOPBACK = ("127.", "localhost", "::1")
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
        self.upstream = upstream_of(settings.upstream)
        self._turns = itertools.count()
        timeout = httpx.Timeout(settings.read_seconds, connect=10.0)
        self._extensions = {"timeout": timeout.as_dict()}
        self._base = self.upstream.raw_path.rstrip(b"/")
        self._host = self.upstream.netloc.decode()
        # The transport alone: a client's redirects, cookies and authentication are not ours.
        self._http = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=256),
            proxy=_way_out(self.upstream),
        )

    async def __aenter__(self) -> Proxy:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

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

    async def _watch(self, exchange: Exchange, request: httpx.Request, receive: Receive) -> None:
        """Run an exchange until it ends or the client is gone."""
        work = asyncio.ensure_future(exchange.run(self._http, request))
        gone = asyncio.ensure_future(_disconnected(receive))
        seconds = self.settings.keepalive_seconds
        try:
            while not work.done() and not gone.done():
                await asyncio.wait(
                    {work, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if not work.done() and exchange.through is not None and exchange.through.holding:
                    await exchange.answer.keep_alive(seconds)
        finally:
            if not work.done():
                work.cancel()
                exchange.client_left()
            exchange.answer.stop()
            gone.cancel()
            await asyncio.gather(work, gone, return_exceptions=True)

    def _bench(self, session: bytes) -> AnswerBench:
        named = visible(session.decode("latin-1"), one_line=True)[:MAX_SESSION_NAME]
        return AnswerBench(
            judging=self.judging,
            session=named or self.settings.session,
            harness=self.settings.harness,
            turn=next(self._turns),
            workdir=self.settings.workdir,
        )

    def _request(self, scope: Scope, body: bytes) -> httpx.Request:
        path = scope.get("raw_path") or scope["path"].encode()
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        return httpx.Request(
            scope["method"],
            self.upstream.copy_with(raw_path=self._base + path + query),
            headers=to_upstream(scope["headers"], self._host),
            content=body,
            extensions=self._extensions,
        )


def _way_out(upstream: httpx.URL) -> str | None:
    """The HTTP proxy that the environment names for this address."""
    if upstream.host.startswith(LOOPBACK) or proxy_bypass(upstream.host):
        return None
    return getproxies().get(upstream.scheme)


def upstream_of(address: str) -> httpx.URL:
    """The address less a `/v1` at its end, which every path brings along. Raises ConfigError."""
    try:
        url = httpx.URL(address.rstrip("/").removesuffix("/v1"))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query:
        raise ConfigError(
            f"upstream {address!r}: not an address like http://127.0.0.1:8000 (no user, no query)"
        )
    return url


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
