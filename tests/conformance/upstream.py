"""A model server that fails: what vLLM's completions route says, then an error, or nothing.

For `VllmEngine`, so that a failure takes the way it takes in a run: server, engine, gateway,
harness.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from gateway.support import END
from harness_adapters.engine.vllm_server import VllmEngine

STALL = "stall"
"""A reply that never comes."""


class Upstream:
    """Says `replies` in order: text, an (HTTP status, message), or `STALL`."""

    def __init__(self, replies: Iterable[str | tuple[int, str]]) -> None:
        self.replies = iter(replies)
        self.requests = 0
        self.cancelled = 0

    async def complete(self, request: Request) -> Response:
        await request.json()
        self.requests += 1
        reply = next(self.replies)
        if reply is STALL:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            self.cancelled += 1
            return Response()
        if isinstance(reply, tuple):
            status, message = reply
            return JSONResponse({"error": {"message": message}}, status)
        ids = [*map(ord, reply), END]
        logprobs = {"token_logprobs": [-0.5] * len(ids)}
        choice = {"token_ids": ids, "logprobs": logprobs, "finish_reason": "stop"}
        return JSONResponse({"choices": [choice], "usage": {}})


@asynccontextmanager
async def engine_on(upstream: Upstream) -> AsyncIterator[VllmEngine]:
    """The engine of a run, attached to `upstream` on a socket of its own."""
    routes = [Route("/v1/completions", upstream.complete, methods=["POST"])]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    engine = VllmEngine(url, max_context=300_000, end_ids=[END])
    try:
        yield engine
    finally:
        await engine.close()
        server.should_exit = True
        await serving
