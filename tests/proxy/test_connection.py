"""Connections to the upstream: kept, given up, and never the source of another's answer."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from harness_adapters.proxy.connection import UpstreamError, UpstreamTimeout
from harness_adapters.proxy.upstream import Upstream

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"


class Server:
    """Answers the n-th request with the n-th bytes; None closes, a number waits so many seconds."""

    def __init__(self, *answers):
        self.answers, self.connections, self.heads = list(answers), 0, []
        self.writers = []

    async def serve(self, reader, writer):
        self.connections += 1
        self.writers.append(writer)
        try:
            while True:
                self.heads.append(await reader.readuntil(b"\r\n\r\n"))
                for part in self.answers.pop(0):
                    if part is None:
                        writer.close()
                        return
                    if isinstance(part, float):
                        await asyncio.sleep(part)
                    else:
                        writer.write(part)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def before(server, address=None, **options):
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    upstream = Upstream(address or f"http://127.0.0.1:{port}", **{"read_seconds": 5.0} | options)
    try:
        yield upstream
    finally:
        await upstream.close()
        listener.close()
        for writer in server.writers:
            writer.close()


async def ask(upstream, method="GET", path=b"/x"):
    request = upstream.request(method, path, [(b"host", b"h")], b"")
    async with upstream.sent(request) as answer:
        return answer.status, b"".join([part async for part in answer.portions])


@pytest.mark.parametrize(
    ("method", "written", "body", "lasts"),
    [
        ("GET", [OK], b"ok", True),
        ("GET", [OK[:30], 0.02, OK[30:-1], 0.02, OK[-1:]], b"ok", True),
        ("GET", [CHUNKED], b"ok", True),
        ("GET", [b"HTTP/1.1 103 Hints\r\n\r\n" + OK], b"ok", True),
        ("HEAD", [b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n"], b"", True),
        ("GET", [b"HTTP/1.1 204 No\r\n\r\n"], b"", True),
        ("GET", [b"HTTP/1.1 200 OK\r\n\r\nok", None], b"ok", False),
        ("GET", [b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"], b"ok", False),
        ("GET", [OK.replace(b"content", b"connection: Close\r\ncontent")], b"ok", False),
    ],
)  # fmt: skip
async def test_a_connection_is_kept_when_the_answer_allows_it(method, written, body, lasts):
    server = Server(written, [OK])
    async with before(server) as upstream:
        status, got = await ask(upstream, method)
        assert (status < 300, got) == (True, body)
        assert await ask(upstream) == (200, b"ok")
    assert server.connections == (1 if lasts else 2)


@pytest.mark.parametrize(
    "written",
    [
        [None],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok", None],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", None],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok", None],
        [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok", None],
        [OK + OK],
        [b"qqq\r\n\r\n"],
        [b"x: " + b"y" * (1 << 19)],
    ],
)
async def test_what_is_no_answer_is_an_error(written):
    async with before(Server(written, [OK])) as upstream:
        with pytest.raises(UpstreamError):
            await ask(upstream)
        assert await ask(upstream) == (200, b"ok"), "on a connection of its own"


async def test_an_answer_that_nobody_asked_for_is_nobodys():
    server = Server([OK, 0.05, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"], [OK])
    async with before(server) as upstream:
        assert await ask(upstream) == (200, b"ok")
        await asyncio.sleep(0.2)
        assert await ask(upstream) == (200, b"ok")
    assert server.connections == 2


async def test_a_connection_that_was_closed_meanwhile_is_not_used():
    server = Server([OK, 0.05, None], [OK])
    async with before(server) as upstream:
        assert await ask(upstream) == (200, b"ok")
        await asyncio.sleep(0.2)
        assert await ask(upstream) == (200, b"ok")


async def test_an_answer_that_is_left_early_takes_its_connection_along():
    server = Server([OK[:-1], 5.0], [OK])
    async with before(server) as upstream:
        async with upstream.sent(upstream.request("GET", b"/", [(b"host", b"h")], b"")):
            pass
        assert await ask(upstream) == (200, b"ok")
    assert server.connections == 2


async def test_silence_ends_an_answer_and_single_bytes_dont():
    slow = [part for byte in OK for part in (bytes([byte]), 0.01)]
    async with before(Server(slow, [OK[:-1], 5.0]), read_seconds=0.3) as upstream:
        assert await ask(upstream) == (200, b"ok")
        with pytest.raises(UpstreamTimeout):
            await ask(upstream)


async def test_a_large_answer_waits_for_its_reader():
    body = bytes(range(256)) * (1 << 15)
    head = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body)
    async with before(Server([head + body])) as upstream:
        request = upstream.request("GET", b"/", [(b"host", b"h")], b"")
        async with upstream.sent(request) as answer:
            await asyncio.sleep(0.3)
            portions = [part async for part in answer.portions]
    assert b"".join(portions) == body
    assert max(map(len, portions)) < len(body) / 2


async def test_a_proxy_that_the_environment_names_is_used(monkeypatch):
    server = Server([OK], [None])
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    upstream = Upstream("http://model.invalid:81/base/v1", 5.0)
    try:
        assert await ask(upstream, path=b"/v1/models?a=1") == (200, b"ok")
        with pytest.raises(UpstreamError):
            await ask(upstream)
    finally:
        await upstream.close()
        listener.close()
    assert server.heads[0].startswith(b"GET http://model.invalid:81/base/v1/models?a=1 HTTP/1.1")
