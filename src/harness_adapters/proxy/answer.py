"""What goes back to the agent: nothing before there is something that may."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from starlette.types import Send

from harness_adapters.proxy.routes import Headers

WriteError: TypeAlias = Callable[[str, int], bytes]
"""Message and HTTP status to a body in the form of a wire."""

JSON: Headers = [(b"content-type", b"application/json")]

_BODILESS = (204, 304)


class Refusal(Exception):  # noqa: N818 - an HTTP status with its reason; never leaves this package
    """An answer that is no answer of the upstream's; the text goes to the agent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Answer:
    """One response. Its status goes out with the first bytes, so an early fault has its own."""

    def __init__(self, send: Send, write_error: WriteError) -> None:
        self._send = send
        self._write_error = write_error
        self._head: tuple[int, Headers] | None = None
        self.started = False
        self._last = time.monotonic()

    def begin(self, status: int, headers: Headers) -> None:
        """Set what the first `write` starts with."""
        self._head = status, headers

    async def write(self, data: bytes) -> None:
        """Send a part of a stream."""
        await self._start()
        self._last = time.monotonic()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def end(self) -> None:
        """End a stream."""
        await self._start()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Send all at once."""
        length = [] if status in _BODILESS else [(b"content-length", str(len(body)).encode())]
        self.begin(status, [*headers, *length])
        await self._start()
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, refusal: Refusal) -> None:
        """Send an error in the wire's form. Only before anything was sent."""
        body = self._write_error(f"audit proxy: {refusal}", refusal.status)
        await self.whole(refusal.status, JSON, body)

    async def keep_alive(self, seconds: float) -> None:
        """A comment into a stream that has sent nothing for so long."""
        if self._head is not None and time.monotonic() - self._last >= seconds:
            await self.write(b": waiting for a verdict\n\n")

    async def _start(self) -> None:
        if not self.started:
            self.started = True
            status, headers = self._head or (500, JSON)
            await self._send({"type": "http.response.start", "status": status, "headers": headers})
