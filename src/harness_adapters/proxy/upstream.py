"""The model server behind a proxy: its address, and connections to it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from urllib.request import getproxies, proxy_bypass

import httpx

from harness_adapters.errors import ConfigError
from harness_adapters.guard.judging import one_line
from harness_adapters.proxy.connection import (
    Connection,
    Incoming,
    Outgoing,
    UpstreamError,
    UpstreamTimeout,
    connect,
)
from harness_adapters.proxy.routes import Headers

LOOPBACK = ("127.", "localhost", "::1")
CONNECT_SECONDS = 10.0
MAX_IDLE = 256
"""Connections that are kept without a request on them."""
KEEPALIVE_SECONDS = 30.0


class Upstream:
    """Sends requests to one server, as many at a time as come, each on a connection of its own.

    Where the environment names an HTTP proxy for the address, httpx finds the way; it costs more
    than all else that is done with a request.
    """

    def __init__(self, address: str, read_seconds: float) -> None:
        """`read_seconds` without a byte end an answer. Raises ConfigError."""
        self.url = url_of(address)
        self._tls = ssl.create_default_context() if self.url.scheme == "https" else None
        self._port = self.url.port or (443 if self._tls else 80)
        self._read_seconds = read_seconds
        self._base = self.url.raw_path.rstrip(b"/")
        self.host = self.url.netloc.decode()
        self._idle: list[tuple[Connection, float]] = []
        """With the time since when; the one that was used last stands last."""
        way_out = _way_out(self.url)
        self._far = None if way_out is None else self._client(way_out)

    def request(self, method: str, target: bytes, headers: Headers, body: bytes) -> Outgoing:
        """A request for a path with its query, as they came."""
        if body or method in ("POST", "PUT", "PATCH"):
            headers = [*headers, (b"content-length", str(len(body)).encode())]
        return Outgoing(method.encode(), self._base + target, headers, body)

    def sent(self, request: Outgoing) -> AbstractAsyncContextManager[Incoming]:
        """The answer, its body still to come. Entering and reading it raise UpstreamError."""
        return self._near(request) if self._far is None else self._through(self._far, request)

    async def close(self) -> None:
        """Close the connections without a request on them."""
        while self._idle:
            self._idle.pop()[0].close()
        if self._far is not None:
            await self._far.aclose()

    @asynccontextmanager
    async def _near(self, request: Outgoing) -> AsyncIterator[Incoming]:
        connection = self._kept() or await connect(
            self.url.raw_host.decode(),
            self._port,
            self._tls,
            seconds=CONNECT_SECONDS,
            read_seconds=self._read_seconds,
        )
        try:
            yield await connection.ask(request)
        finally:
            connection.release()
            if connection.usable and len(self._idle) < MAX_IDLE:
                self._idle.append((connection, asyncio.get_running_loop().time()))
            else:
                connection.close()

    def _kept(self) -> Connection | None:
        """A connection that the server hasn't closed; those that wait for too long are closed."""
        oldest = asyncio.get_running_loop().time() - KEEPALIVE_SECONDS
        while self._idle and self._idle[0][1] < oldest:
            self._idle.pop(0)[0].close()
        while self._idle:
            connection, _ = self._idle.pop()
            if connection.usable:
                return connection
        return None

    @asynccontextmanager
    async def _through(
        self, client: httpx.AsyncHTTPTransport, request: Outgoing
    ) -> AsyncIterator[Incoming]:
        timeout = httpx.Timeout(self._read_seconds, connect=CONNECT_SECONDS)
        asked = httpx.Request(
            request.method.decode(),
            self.url.copy_with(raw_path=request.target),
            headers=request.headers,
            content=request.body,
            extensions={"timeout": timeout.as_dict()},
        )
        with _errors_of_httpx():
            response = await client.handle_async_request(asked)
        try:
            yield Incoming(response.status_code, response.headers.raw, _portions(response))
        finally:
            await response.aclose()

    def _client(self, way_out: str) -> httpx.AsyncHTTPTransport:
        # No client around it: redirects, cookies and authentication are not a proxy's.
        return httpx.AsyncHTTPTransport(
            verify=self._tls or False,
            proxy=way_out,
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=MAX_IDLE,
                keepalive_expiry=KEEPALIVE_SECONDS,
            ),
        )


async def _portions(response: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx.AsyncByteStream)  # all transports give this kind
    with _errors_of_httpx():
        async for data in response.stream:
            yield data


@contextmanager
def _errors_of_httpx() -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise UpstreamTimeout(one_line(error)) from None
    except httpx.HTTPError as error:
        raise UpstreamError(one_line(error)) from None


def url_of(address: str) -> httpx.URL:
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


def _way_out(url: httpx.URL) -> str | None:
    """The HTTP proxy that the environment names for this address."""
    if url.host.startswith(LOOPBACK) or proxy_bypass(url.host):
        return None
    return getproxies().get(url.scheme)
