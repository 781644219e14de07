"""Answers of routes that the guard doesn't judge: they pass as long as no call is in them."""

from __future__ import annotations

from harness_adapters.proxy.chat import DONE, write_error
from harness_adapters.proxy.events import Event, write_event
from harness_adapters.proxy.shapes import NotJson, Unreadable, carries_call, load

_FOUND = "a tool call on a route that is not judged"


class PlainFilter:
    """A stream of events that are looked through and never held."""

    holding = False

    async def feed(self, event: Event) -> bytes:
        """The event as it came. Raises Unreadable when a call is in it."""
        if event.data and event.data.strip() != DONE and carries_call(load(event.data)):
            raise Unreadable(_FOUND)
        return event.raw

    def end(self) -> bytes:
        """Nothing is ever left."""
        return b""

    def abandon(self, rule: str, reason: str) -> int:
        """No call is ever open."""
        return 0

    def close(self) -> bytes:
        """No end of its own."""
        return b""

    def error(self, message: str, status: int) -> bytes:
        """An error within the stream, which ends it."""
        return write_event(write_error(message, status))


def look_through(body: bytes) -> bytes:
    """`body`, when it is no JSON with a call in it, nor lines of such. Raises Unreadable."""
    for text in (body, *body.splitlines()):
        try:
            value = load(text.removeprefix(b"data:"))
        except NotJson:
            continue
        if carries_call(value):
            raise Unreadable(_FOUND)
        if text is body:
            break
    return body
