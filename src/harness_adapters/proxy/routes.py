"""Which requests are judged, which pass, which are refused; which headers go on."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import unquote

Headers: TypeAlias = list[tuple[bytes, bytes]]


class Route(StrEnum):
    """What is done with a request."""

    CHAT = "chat"
    """Judged as OpenAI Chat Completions."""
    MESSAGES = "messages"
    """Judged as Anthropic Messages."""
    OTHER = "other"
    """Forwarded; its answer passes when no call is in it."""
    REFUSED = "refused"
    """Its answers are calls in a form that can't be judged: never forwarded."""


UNJUDGED = {"responses", "realtime", "batches", "threads", "conversations"}
"""Of OpenAI's and Anthropic's paths: the routes that answer with calls in other forms."""

HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
"""RFC 9110, section 7.6.1: between two neighbours only."""
SESSION_HEADER = b"x-guard-session"
"""Says which session a request belongs to; for the log, never forwarded."""
_NOT_SENT = HOP_BY_HOP | {b"host", b"content-length", b"accept-encoding", b"expect", SESSION_HEADER}
_NOT_RETURNED = HOP_BY_HOP | {b"content-length", b"content-encoding"}


def route_of(method: str, path: str) -> Route:
    """By the end of the path, however it is spelled; only POST is judged by its format."""
    parts = [part for part in unquote(path).lower().split("/") if part]
    if ".." in parts or not UNJUDGED.isdisjoint(parts):
        return Route.REFUSED
    if method == "POST" and parts[-2:] == ["chat", "completions"]:
        return Route.CHAT
    if method == "POST" and parts[-1:] == ["messages"]:
        return Route.MESSAGES
    return Route.OTHER


def to_upstream(headers: Iterable[tuple[bytes, bytes]], host: str) -> Headers:
    """Headers of a request as they go on: authorization and all, but for a plain encoding."""
    kept = [(name, value) for name, value in headers if name.lower() not in _NOT_SENT]
    return [(b"host", host.encode()), *kept, (b"accept-encoding", b"identity")]


def to_client(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Headers of an answer as they go back; its length is that of what is sent."""
    return [(name, value) for name, value in headers if name.lower() not in _NOT_RETURNED]
