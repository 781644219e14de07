"""Server-sent events: a stream cut into events, each with the bytes that it came as.

Format: WHATWG HTML, section 9.2 "Server-sent events". Stricter in one point: a field that the
format doesn't know makes a stream unreadable instead of being skipped, since a client may see more
in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from harness_adapters.proxy.shapes import Oversize, Unreadable

_BLANK = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
"""The end of a line and an empty line. Atomic groups: `\\r\\n` is never two line ends."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or comments alone."""

    raw: bytes
    """As it came, the empty line after it included."""
    name: str | None
    data: str
    """The data lines joined by line ends; empty for comments."""


class Splitter:
    """Bytes in any portions to whole events. `limit` in bytes, for one event."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._searched = 0
        self._first = True

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that `data` completes; to be taken before more is fed.

        Raises Unreadable, and Oversize beyond the limit, after the events that came before.
        """
        self._buffer += data
        start = 0
        while found := _BLANK.search(self._buffer, max(start, self._searched)):
            if found.end() == len(self._buffer) and found[0] == b"\r\n\r":
                break  # the other half of its last line end is still to come
            raw = bytes(self._buffer[start : found.end()])
            start = self._searched = found.end()
            yield self._event(raw)
        del self._buffer[:start]
        # What ends the buffer may be the first half of a line end and an empty line.
        self._searched = max(0, len(self._buffer) - 3)
        if len(self._buffer) > self._limit:
            raise Oversize(f"an event of more than {self._limit} bytes")

    def rest(self) -> Event | None:
        """What is left at the end of the stream, as an event that has no empty line after it."""
        left, self._buffer = bytes(self._buffer), bytearray()
        return self._event(left) if left else None

    def _event(self, raw: bytes) -> Event:
        if raw.startswith(b"data: ") and raw.find(b"\n") == len(raw) - 2 and b"\r" not in raw:
            return Event(raw, None, _text(raw[6:-2]))
        text = raw
        if self._first:
            self._first, text = False, raw.removeprefix(b"\xef\xbb\xbf")
        name: bytes | None = None
        data: list[bytes] = []
        for line in text.splitlines():
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            match field:
                case b"":  # a comment, or an empty line
                    pass
                case b"data":
                    data.append(value)
                case b"event":
                    name = value
                case b"id" | b"retry":
                    pass
                case _:
                    raise Unreadable("a line of the stream is no field of an event")
        return Event(raw, None if name is None else _text(name), _text(b"\n".join(data)))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Unreadable("an event is not UTF-8") from None


def write_event(data: bytes, name: str | None = None) -> bytes:
    """One event with one line of data."""
    head = b"" if name is None else b"event: " + name.encode() + b"\n"
    return head + b"data: " + data + b"\n\n"
