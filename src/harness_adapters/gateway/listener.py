"""HTTP for one listening socket per session: Starlette routes on uvicorn's protocol class.

No server object, thread or signal handler per listener: a session's sandbox may hold it for a
second only, and 32 of them run at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Protocol, TypeAlias

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from harness_adapters.gateway import anthropic_wire, wire
from harness_adapters.gateway.tape import Tape
from harness_adapters.gateway.wire import Answer, BadRequest, ChatRequest

MAX_BODY_BYTES = 8 << 20
MAX_CONNECTIONS = 16
"""Per listener: a sandbox must not eat the process's file descriptors or memory."""
MAX_ERROR_CHARACTERS = 500
"""Of an error's message: it may quote what was sent."""

ReplyTo: TypeAlias = Callable[[Tape, ChatRequest], Awaitable[Answer]]
"""Raises BadRequest at once; what it returns is awaited after the answer's headers are sent."""

CountOf: TypeAlias = Callable[[Tape, ChatRequest], int]
"""Tokens of a request's prompt. Raises BadRequest."""


class Wire(Protocol):
    """A format of requests and answers; the modules `wire` and `anthropic_wire` are such."""

    def read_request(self, body: bytes) -> ChatRequest:
        """Raises BadRequest."""
        ...

    def write_completion(self, answer: Answer, model: str, created: int) -> bytes:
        """The answer as one JSON object; `created` in Unix seconds."""
        ...

    def write_events(self, answer: Answer, model: str, created: int) -> Iterator[bytes]:
        """The answer as server-sent events."""
        ...

    def write_error(self, message: str, status: int) -> bytes:
        """The body of an error with this HTTP status."""
        ...


class Listener:
    """Serves sessions, each on a socket of its own."""

    def __init__(self, reply_to: ReplyTo, count_of: CountOf, keepalive_seconds: float) -> None:
        self._reply_to = reply_to
        self._count_of = count_of
        self._keepalive_seconds = keepalive_seconds
        self.models = ["model"]
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", self._completions, methods=["POST"]),
                Route("/v1/messages", self._messages, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _http_error},
        )
        self._config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            # A tool may run for minutes between two requests of one connection.
            timeout_keep_alive=24 * 3600,
        )
        self._config.load()

    async def serve(self, tape: Tape, sock: socket.socket) -> Callable[[], Awaitable[None]]:
        """Start; returns the function that stops. `sock` must be listening."""
        # What it accepts inherits this; asyncio sets it only on sockets that it made itself.
        # Without it a second small write waits for the client's delayed acknowledgement.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        state = ServerState()

        def protocol() -> asyncio.Protocol:
            if len(state.connections) >= MAX_CONNECTIONS:
                return _Refuse()
            return H11Protocol(self._config, state, {"tape": tape})

        server = await asyncio.get_running_loop().create_server(protocol, sock=sock)

        async def stop() -> None:
            server.close()
            for connection in list(state.connections):
                connection.transport.abort()
            tasks = list(state.tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        return stop

    async def _completions(self, request: Request) -> Response:
        return await self._generate(request, wire)

    async def _messages(self, request: Request) -> Response:
        return await self._generate(request, anthropic_wire)

    async def _count_tokens(self, request: Request) -> Response:
        def count(asked: ChatRequest) -> Response:
            tokens = self._count_of(request.state.tape, asked)
            return Response(anthropic_wire.write_count(tokens), media_type="application/json")

        return await _answered(request, anthropic_wire, count)

    async def _generate(self, request: Request, spoken: Wire) -> Response:
        def start(asked: ChatRequest) -> Response:
            answer = self._reply_to(request.state.tape, asked)
            return _Reply(answer, asked, spoken, self._keepalive_seconds)

        return await _answered(request, spoken, start)

    async def _models(self, request: Request) -> Response:
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "gateway"}
            for name in self.models
        ]
        return JSONResponse({"object": "list", "data": models})


class _Reply(Response):
    """Waits for an answer, keeping the connection alive; drops it when the client goes away."""

    def __init__(
        self,
        answer: Awaitable[Answer],
        request: ChatRequest,
        spoken: Wire,
        keepalive_seconds: float,
    ) -> None:
        self.status_code = 200
        self.background = None
        self._answer = asyncio.ensure_future(answer)
        self._request = request
        self._wire = spoken
        self._keepalive_seconds = keepalive_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        stream = bool(self._request.stream)
        gone = asyncio.ensure_future(_disconnected(receive))
        try:
            if stream:
                await _start(send, "text/event-stream")
            while not self._answer.done():
                await asyncio.wait(
                    {self._answer, gone},
                    timeout=self._keepalive_seconds,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if gone.done():
                    return
                if stream and not self._answer.done():
                    await _write(send, b": keepalive\n\n", more=True)
            await self._finish(send, stream)
        finally:
            for future in (self._answer, gone):
                future.cancel()
            await asyncio.gather(self._answer, gone, return_exceptions=True)

    async def _finish(self, send: Send, stream: bool) -> None:
        answer, model, now = self._answer.result(), self._request.model, int(time.time())
        if stream:
            await _write(send, b"".join(self._wire.write_events(answer, model, now)), more=False)
        else:
            body = self._wire.write_completion(answer, model, now)
            await _start(send, "application/json", len(body))
            await _write(send, body, more=False)


class _Refuse(asyncio.Protocol):
    """Closes a connection beyond the limit without reading from it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        with contextlib.suppress(AttributeError):
            transport.abort()  # type: ignore[attr-defined] # every socket transport has it


async def _answered(
    request: Request, spoken: Wire, answer: Callable[[ChatRequest], Response]
) -> Response:
    """What `answer` makes of a request; every refusal as one error in the wire's own form."""
    try:
        return answer(spoken.read_request(await _body(request)))
    except BadRequest as error:
        return _error(spoken, str(error), error.status)
    except RecursionError:
        return _error(spoken, "the request is nested too deeply", HTTPStatus.BAD_REQUEST)
    except ClientDisconnect:
        return Response(status_code=HTTPStatus.BAD_REQUEST)


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BadRequest(f"the body is larger than {MAX_BODY_BYTES} bytes", 413)
    return bytes(body)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _start(send: Send, content_type: str, length: int | None = None) -> None:
    headers = [(b"content-type", content_type.encode()), (b"cache-control", b"no-cache")]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _write(send: Send, body: bytes, *, more: bool) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    # Every client of Anthropic's format names its version, on any path.
    spoken = anthropic_wire if "anthropic-version" in request.headers else wire
    told = f"{request.method} {request.url.path}: {error.detail}"
    return _error(spoken, told, error.status_code)


def _error(spoken: Wire, message: str, status: int) -> Response:
    body = spoken.write_error(message[:MAX_ERROR_CHARACTERS], status)
    return Response(body, status, media_type="application/json")
