"""The model server behind a proxy: its address, and connections to it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import httpx

from harness_adapters.errors import ConfigError

LOOPBACK = ("127.", "localhost", "::1")
CONNECT_SECONDS = 10.0
MAX_IDLE = 256
"""Connections that are kept without a request on them."""
KEEPALIVE_SECONDS = 30.0


class Upstream:
    """Sends requests to one server, as many at a time as come.

    Each connection is a transport of its own: one pool for all looks at every connection it has,
    with a system call for each, whenever a request comes or ends.
    """

    def __init__(self, address: str, read_seconds: float) -> None:
        """`read_seconds` without a byte end an answer. Raises ConfigError."""
        self.url = url_of(address)
        self._proxy = _way_out(self.url)
        self._tls = ssl.create_default_context() if self.url.scheme == "https" else False
        self._base = self.url.raw_path.rstrip(b"/")
        self.host = self.url.netloc.decode()
        timeout = httpx.Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._extensions = {"timeout": timeout.as_dict()}
        self._idle: list[httpx.AsyncHTTPTransport] = []

    def request(
        self, method: str, target: bytes, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> httpx.Request:
        """A request for a path with its query, as they came."""
        url = self.url.copy_with(raw_path=self._base + target)
        return httpx.Request(
            method, url, headers=headers, content=body, extensions=self._extensions
        )

    @asynccontextmanager
    async def sent(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        """The answer, its body still to come. Raises httpx.HTTPError."""
        transport = self._idle.pop() if self._idle else self._connection()
        try:
            # No client around it: redirects, cookies and authentication are not a proxy's.
            response = await transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            if len(self._idle) < MAX_IDLE:
                self._idle.append(transport)
            else:
                await transport.aclose()

    async def close(self) -> None:
        """Close the connections without a request on them."""
        while self._idle:
            await self._idle.pop().aclose()

    def _connection(self) -> httpx.AsyncHTTPTransport:
        return httpx.AsyncHTTPTransport(
            verify=self._tls,
            proxy=self._proxy,
            limits=httpx.Limits(max_connections=1, keepalive_expiry=KEEPALIVE_SECONDS),
        )


def portions(response: httpx.Response) -> AsyncIterator[bytes]:
    """The body as it arrives."""
    assert isinstance(response.stream, httpx.AsyncByteStream)  # all transports give this kind
    return aiter(response.stream)


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
