"""Where the body of an answer ends: by chunks, by its length, or with the connection.

Format: RFC 9112, sections 6 and 7. Heads are read by h11, which also refuses what they must not
say; bodies are cut here, since h11 takes as long for one chunk as the guard for one event.
"""

from __future__ import annotations

import re
from typing import Protocol

MAX_LINE = 8 << 10
"""Bytes of a chunk's first line, and of all trailers."""

_SIZE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\r\n]*)?")


class BadFraming(ValueError):  # noqa: N818 - what the body is; never leaves the proxy
    """A body that isn't cut as the format says."""


class Framing(Protocol):
    """Takes the bytes behind a head as they come."""

    @property
    def done(self) -> bool:
        """Whether the body is whole."""
        ...

    def feed(self, data: bytes) -> bytes:
        """What of the body is in `data`. Raises BadFraming, also for bytes behind the end."""
        ...

    def end(self) -> None:
        """The connection is closed. Raises BadFraming where the body needs more."""
        ...


class Sized:
    """As many bytes as the head says."""

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def done(self) -> bool:
        """See Framing."""
        return self._left == 0

    def feed(self, data: bytes) -> bytes:
        """See Framing."""
        self._left -= len(data)
        if self._left < 0:
            raise BadFraming("more bytes than the head says")
        return data

    def end(self) -> None:
        """See Framing."""
        if self._left:
            raise BadFraming(f"it closed the connection {self._left} bytes before the end")


class Endless:
    """All bytes until the connection closes."""

    done = False

    def feed(self, data: bytes) -> bytes:
        """See Framing."""
        return data

    def end(self) -> None:
        """See Framing."""
        self.done = True


class Chunked:
    """Chunks, each with its size before it; trailers are dropped."""

    def __init__(self) -> None:
        self._kept = b""
        """The beginning of a line."""
        self._left = 0
        """Bytes of the chunk that are still to come, its line end not counted."""
        self._line_end = self._trailers = False
        self._trailer_bytes = 0
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """See Framing."""
        data, self._kept = self._kept + data, b""
        parts: list[bytes] = []
        at = 0
        while at < len(data):
            if self.done:
                raise BadFraming("more bytes behind the last chunk")
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                self._line_end = not self._left
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._kept = data[at:]
                if len(self._kept) > MAX_LINE:
                    raise BadFraming("a line between chunks that doesn't end")
                break
            self._line(data[at:end])
            at = end + 2
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def end(self) -> None:
        """See Framing."""
        raise BadFraming("it closed the connection between or within chunks")

    def _line(self, line: bytes) -> None:
        if self._line_end:
            if line:
                raise BadFraming("a chunk is longer than it says")
            self._line_end = False
        elif self._trailers:
            self.done = not line
            self._trailer_bytes += len(line)
            if self._trailer_bytes > MAX_LINE:
                raise BadFraming(f"more than {MAX_LINE} bytes of trailers")
        else:
            size = _SIZE.fullmatch(line)
            if size is None:
                raise BadFraming("a chunk without a size")
            self._left = int(size[1], 16)
            self._trailers = not self._left
