"""What goes back to the agent: nothing before there is something that may."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeAlias

from starlette.types import Send

from harness_adapters.proxy.routes import Headers

WriteError: TypeAlias = Callable[[str, int], bytes]
"""Message and HTTP status to a body in the form of a wire."""

JSON: Headers = [(b"content-type", b"application/json")]

MAX_WAITING = 1 << 20
"""Bytes that wait for a slow client before the upstream waits, too."""

_BODILESS = (204, 304)


class Refusal(Exception):  # noqa: N818 - an HTTP status with its reason; never leaves this package
    """An answer that is no answer of the upstream's; the text goes to the agent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Answer:
    """One response. Its status goes out with the first bytes, so an early fault has its own.

    What is written leaves when the event loop turns: parts that arrived together leave together.
    """

    def __init__(self, send: Send, write_error: WriteError) -> None:
        self._send = send
        self._write_error = write_error
        self._head: tuple[int, Headers] | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._flushing: asyncio.Task[None] | None = None
        self.started = False
        self._last = time.monotonic()

    def begin(self, status: int, headers: Headers) -> None:
        """Set what the first `write` starts with."""
        self._head = status, headers

    async def write(self, data: bytes) -> None:
        """Send a part of a stream; waits only for a client that is far behind."""
        self._put(data)
        if self._waiting_bytes > MAX_WAITING and self._flushing is not None:
            await self._flushing

    async def end(self) -> None:
        """End a stream."""
        if self._flushing is not None:
            await self._flushing
        await self._start()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send all at once."""
        length = [] if status in _BODILESS else [(b"content-length", str(len(body)).encode())]
        self.begin(status, [*headers, *length])
        self.started = True
        await self._start()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, refusal: Refusal) -> None:
        """Send an error in the wire's form. Only before anything was sent."""
        body = self._write_error(f"audit proxy: {refusal}", refusal.status)
        await self.whole(refusal.status, JSON, body)

    def keep_alive(self, seconds: float) -> None:
        """A comment into a stream that has sent nothing for so long."""
        begun = self._head is not None or self.started
        if begun and time.monotonic() - self._last >= seconds:
            self._put(b": waiting for a verdict\n\n")

    def stop(self) -> None:
        """Send no more: the client is gone."""
        if self._flushing is not None:
            self._flushing.cancel()

    def _put(self, data: bytes) -> None:
        self.started = True
        self._last = time.monotonic()
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        await self._start()
        while self._waiting:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _start(self) -> None:
        if self._head is not None:
            (status, headers), self._head = self._head, None
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
