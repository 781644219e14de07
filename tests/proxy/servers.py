"""A server that answers whatever a test wants, byte for byte, and a proxy before it."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from harness_adapters.guard.audit import AuditLog
from harness_adapters.proxy import Judging, Proxy, ProxySettings, listening
from harness_adapters.proxy.serving import address_of, server_of

JSON, SSE = "application/json", "text/event-stream"


@dataclass
class Asked:
    target: str
    headers: dict
    body: bytes


class Upstream:
    """Raw HTTP/1.1. `body`: bytes, or a list of bytes and of events to wait for."""

    def __init__(self, kind, body, *, status=200, header="x-upstream: yes", orderly=True):
        self.kind, self.body, self.status, self.header = kind, body, status, header
        self.orderly = orderly
        self.requests = []
        self.left = asyncio.Event()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._writers = []
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._writers:
            writer.close()

    async def _serve(self, reader, writer):
        self._writers.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *rest = head.decode().strip().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in rest)
                headers |= {k.lower(): v for k, v in (line.split(": ", 1) for line in rest)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.requests.append(Asked(first.split()[1], headers, body))
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            self.left.set()
        finally:
            writer.close()

    async def _answer(self, reader, writer):
        head = f"HTTP/1.1 {self.status} X\r\ncontent-type: {self.kind}\r\n{self.header}\r\n"
        writer.write(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
        for one in self.body if isinstance(self.body, list) else [self.body]:
            if isinstance(one, asyncio.Event):
                gone = asyncio.ensure_future(reader.read(1))
                await asyncio.wait(
                    {gone, asyncio.ensure_future(one.wait())}, return_when=asyncio.FIRST_COMPLETED
                )
                if gone.done():
                    raise ConnectionError
                gone.cancel()
                await asyncio.gather(gone, return_exceptions=True)
            elif one:
                writer.write(f"{len(one):x}\r\n".encode() + one + b"\r\n")
                await writer.drain()
        if not self.orderly:
            raise ConnectionError
        writer.write(b"0\r\n\r\n")
        await writer.drain()


@asynccontextmanager
async def proxied(upstream, log, policy, *, log_only=False, seconds=5.0, **settings):
    """A client of a proxy before `upstream`; `log` a path, or an AuditLog."""
    audit = log if isinstance(log, AuditLog) else AuditLog(log)
    judging = Judging(policy, audit, log_only=log_only, seconds=seconds)
    async with Proxy(ProxySettings(upstream.url, **settings), judging) as proxy:
        sock = listening("127.0.0.1", 0)
        server = server_of(proxy)
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            async with httpx.AsyncClient(base_url=address_of(sock), timeout=120) as http:
                yield http
        finally:
            server.should_exit = server.force_exit = True
            await serving
