"""One HTTP/1.1 connection to the model server, on asyncio's own protocols.

A general client puts four layers between a socket and an answer, which cost more than all judging.
Here a connection is one object: the event loop hands it bytes, h11 reads heads and `framing` cuts
bodies, and whoever waits for the answer gets all that has come at once.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

import h11

from harness_adapters.proxy.framing import BadFraming, Chunked, Endless, Framing, Sized
from harness_adapters.proxy.routes import Headers

MAX_WAITING = 1 << 20
"""Bytes of an answer that wait for their reader before the server has to."""
MAX_HEAD = 256 << 10
"""Bytes of an answer's status line and headers."""


class UpstreamError(Exception):
    """The model server can't be reached, broke off, or says what is no HTTP/1.1."""


class UpstreamTimeout(UpstreamError):  # noqa: N818 - a kind of UpstreamError
    """The model server is silent for too long."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as it goes to the model server; `target` is path and query."""

    method: bytes
    target: bytes
    headers: Headers
    body: bytes


@dataclass(frozen=True, slots=True)
class Incoming:
    """An answer whose body is still to come."""

    status: int
    headers: Headers
    portions: AsyncIterator[bytes]
    """The body as it arrives. Raises UpstreamError."""

    def header(self, name: bytes) -> str:
        """The value of a header, by its name in lower case; empty when it isn't there."""
        found = next((value for key, value in self.headers if key.lower() == name), b"")
        return found.decode("latin-1")

    @property
    def redirects(self) -> bool:
        """Whether a client would go elsewhere."""
        return 300 <= self.status < 400 and bool(self.header(b"location"))

    @property
    def ok(self) -> bool:
        """Whether the server says that it worked."""
        return 200 <= self.status < 300


class Connection(asyncio.Protocol):
    """Sends one request after the other; `read_seconds` without a byte end an answer."""

    def __init__(self, read_seconds: float) -> None:
        self._read_seconds = read_seconds
        self._loop = asyncio.get_running_loop()
        self._http: h11.Connection | None = None
        """Of the answer whose head is still to come."""
        self._transport: asyncio.Transport | None = None
        self._head: h11.Response | None = None
        self._framing: Framing | None = None
        self._has_body = True
        self._lasting = True
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._ended = True
        self._error: UpstreamError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = 0.0
        self._paused = False

    @property
    def usable(self) -> bool:
        """Whether another request can be sent."""
        open_ = self._transport is not None and not self._transport.is_closing()
        return open_ and self._ended and not self._body and self._lasting and self._error is None

    async def ask(self, request: Outgoing) -> Incoming:
        """Send a request and wait for the head of its answer. Raises UpstreamError."""
        assert self._transport is not None  # set before anybody gets this object
        written = self._written(request)
        self._head, self._ended, self._heard = None, False, self._loop.time()
        self._framing = None
        self._has_body = request.method != b"HEAD"
        self._timer = self._loop.call_later(self._read_seconds, self._look)
        self._transport.write(written)
        while self._head is None:
            await self._more()
        answer = self._head
        return Incoming(answer.status_code, answer.headers.raw_items(), self._portions())

    def _written(self, request: Outgoing) -> bytes:
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
        try:
            head = self._http.send(
                h11.Request(method=request.method, target=request.target, headers=request.headers)
            )
        except h11.LocalProtocolError as error:
            raise UpstreamError(f"the request can't be sent: {error}") from None
        return (head or b"") + request.body

    def release(self) -> None:
        """Make ready for the next request; closed where the answer was not read to its end."""
        self._stop_timer()
        if not self.usable:
            self.close()

    def close(self) -> None:
        """Close at once."""
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()

    async def _portions(self) -> AsyncIterator[bytes]:
        while True:
            if self._body:
                data = self._body[0] if len(self._body) == 1 else b"".join(self._body)
                self._body.clear()
                self._body_bytes = 0
                if self._paused and self._transport is not None:
                    self._paused = False
                    self._transport.resume_reading()
                    self._heard = self._loop.time()
                yield data
            elif self._ended:
                return
            else:
                await self._more()

    async def _more(self) -> None:
        """Wait until something has come. Raises UpstreamError when nothing can."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # ------------------------------------------------------------------ called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._ended:
            # Nobody asked: as the answer to the next request it would be another's.
            self.close()
            return
        self._heard = self._loop.time()
        self._take(data)

    def connection_lost(self, error: Exception | None) -> None:
        """See asyncio.Protocol. An answer without a length ends in this way, too."""
        self._stop_timer()
        if self._ended or self._error is not None:
            return
        if error is not None or self._framing is None:
            self._fail(UpstreamError(f"it closed the connection: {error or 'no answer'}"))
            return
        try:
            self._framing.end()
        except BadFraming as fault:
            self._fail(UpstreamError(str(fault)))
        else:
            self._ended = True
            self._wake()

    def _take(self, data: bytes) -> None:
        if self._error is not None:
            return
        try:
            if self._framing is None:
                data = self._take_head(data)
            if self._framing is not None:
                body = self._framing.feed(data)
                if body:
                    self._body.append(body)
                    self._body_bytes += len(body)
                self._ended = self._framing.done
        except (h11.RemoteProtocolError, BadFraming) as error:
            self._fail(UpstreamError(str(error)))
            return
        if self._ended:
            self._stop_timer()
        if self._body_bytes > MAX_WAITING and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        if self._head is not None:
            self._wake()

    def _take_head(self, data: bytes) -> bytes:
        """Read towards the head of an answer; gives what stands behind it."""
        assert self._http is not None  # made before a request is sent
        self._http.receive_data(data)
        while isinstance(event := self._http.next_event(), h11.InformationalResponse):
            pass
        if not isinstance(event, h11.Response):
            return b""
        self._head = event
        values = dict(event.headers)
        said = values.get(b"connection", b"").lower()
        self._lasting = event.http_version == b"1.1" and b"close" not in said
        if not self._has_body or event.status_code in (204, 304):
            self._framing = Sized(0)
        elif b"transfer-encoding" in values:  # h11 takes no other than chunked
            self._framing = Chunked()
        elif b"content-length" in values:
            self._framing = Sized(int(values[b"content-length"]))
        else:
            self._framing, self._lasting = Endless(), False
        rest, _ = self._http.trailing_data
        return rest

    def _fail(self, error: UpstreamError) -> None:
        self._error = self._error or error
        self.close()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _look(self) -> None:
        """One timer for each answer, set again only when it goes off: bytes only note the time."""
        left = self._heard + self._read_seconds - self._loop.time()
        if self._paused or left > 0:
            seconds = left if left > 0 else self._read_seconds
            self._timer = self._loop.call_later(seconds, self._look)
        else:
            self._fail(UpstreamTimeout(f"nothing came for {self._read_seconds:g} seconds"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def connect(
    host: str, port: int, tls: ssl.SSLContext | None, *, seconds: float, read_seconds: float
) -> Connection:
    """A new connection. Raises UpstreamError."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, connection = await loop.create_connection(
                lambda: Connection(read_seconds),
                host,
                port,
                ssl=tls,
                server_hostname=host if tls else None,
            )
    except TimeoutError:
        raise UpstreamTimeout(f"no connection within {seconds:g} seconds") from None
    except OSError as error:
        raise UpstreamError(f"no connection: {error.strerror or error}") from None
    return connection
