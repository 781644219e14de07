"""What the audit proxy costs: direct and proxied requests to one local mock, side by side.

    python benchmarks/guard_proxy.py --requests 1000 --seconds 10

Three processes: the mock (canned bytes, no parsing), the proxy as users start it, and this client.
Direct and proxied requests alternate on one connection each, so that both see the same machine;
what the proxy adds is the difference of their quantiles. An answer that isn't streamed carries one
call, a stream 16 text deltas and one call in 4 pieces; every call is judged by patterns and logged.
Throughput: 64 connections that ask again as soon as their stream has ended.

On a machine with other work all of these measure that work, too. The proxy's own CPU time for each
request is printed beside them: it hardly depends on who else is running.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

STREAMS = 64
WARM_UP = 50
"""Requests on each side that aren't counted."""
DELAY = 0.002
"""Seconds between the first text of a stream and its rest, when the first is what is timed."""
ARGUMENTS = json.dumps({"command": "grep -rn 'def main' src | head -20", "timeout": 60})
HEAD = {"id": "c", "created": 0, "model": "mock"}


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    value = {**HEAD, "object": "chat.completion.chunk", "choices": [choice]}
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def call_part(arguments: str, **more: object) -> dict[str, object]:
    return {"tool_calls": [{"index": 0, **more, "function": {"arguments": arguments}}]}


def stream_events() -> list[bytes]:
    function = {"name": "bash", "arguments": ""}
    first = {"index": 0, "id": "call_1", "type": "function", "function": function}
    quarter = len(ARGUMENTS) // 4 + 1
    pieces = [ARGUMENTS[at : at + quarter] for at in range(0, len(ARGUMENTS), quarter)]
    return [
        *(chunk({"content": f"word {number} "}) for number in range(16)),
        chunk({"tool_calls": [first]}),
        *(chunk(call_part(piece)) for piece in pieces),
        chunk({}, "tool_calls"),
        b"data: [DONE]\n\n",
    ]


def whole_answer() -> bytes:
    function = {"name": "bash", "arguments": ARGUMENTS}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({**HEAD, "object": "chat.completion", "choices": [choice]}).encode()


def chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


# --- the mock ---------------------------------------------------------------------------------


async def mock() -> None:
    """Print a port and answer: `whole`, `stream` or `slow` (a pause after the first text)."""
    body = whole_answer()
    plain = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: "
    plain += str(len(body)).encode() + b"\r\n\r\n" + body
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    events = [chunked(event) for event in stream_events()] + [b"0\r\n\r\n"]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = await reader.readuntil(b"\r\n\r\n")
                length = int(asked.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                kind = await reader.readexactly(length)
                if b"whole" in kind:
                    writer.write(plain)
                    continue
                writer.write(head + events[0])
                if b"slow" in kind:
                    await asyncio.sleep(DELAY)
                for event in events[1:]:
                    writer.write(event)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- the client -------------------------------------------------------------------------------


class Connection:
    """A keep-alive connection that reads as little of an answer as it can."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def open(self) -> Connection:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def ask(self, kind: str) -> tuple[float, float]:
        """Seconds to the first byte of the body and to its end."""
        body = json.dumps({"kind": kind}).encode()
        start = time.perf_counter()
        self._writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\nauthorization: Bearer x\r\n"
            b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body
        )
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        if b"chunked" not in head:
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            got = await self._reader.readexactly(length)
            first = time.perf_counter()
        else:
            got = await self._reader.read(1 << 16)
            first = time.perf_counter()
            while not got.endswith(b"0\r\n\r\n"):
                got += await self._reader.read(1 << 16)
        assert b"call_1" in got, got
        return first - start, time.perf_counter() - start

    def close(self) -> None:
        """Close it."""
        self._writer.close()


async def added(
    ports: tuple[int, int], requests: int, kind: str, pick: Callable[[tuple[float, float]], float]
) -> list[list[float]]:
    """Milliseconds of direct and of proxied requests, which alternate."""
    sides = [await Connection(port).open() for port in ports]
    times: list[list[float]] = [[], []]
    for number in range(requests + WARM_UP):
        for side, connection in enumerate(sides):
            taken = pick(await connection.ask(kind)) * 1000
            if number >= WARM_UP:
                times[side].append(taken)
    for connection in sides:
        connection.close()
    return times


async def throughput(port: int, seconds: float) -> tuple[int, float]:
    """Streams that ended on `STREAMS` connections, and the seconds it took."""
    end = time.perf_counter() + seconds

    async def worker() -> int:
        connection = await Connection(port).open()
        done = 0
        while time.perf_counter() < end:
            await connection.ask("stream")
            done += 1
        connection.close()
        return done

    start = time.perf_counter()
    counts = await asyncio.gather(*(worker() for _ in range(STREAMS)))
    return sum(counts), time.perf_counter() - start


def cpu_seconds(process: int) -> float:
    """User and system time of a process so far; fields 14 and 15 of proc(5)'s stat."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def show(what: str, times: list[list[float]], cpu: float) -> None:
    cells = []
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        direct, proxied = (sorted(side)[int(share * len(side))] for side in times)
        cells.append(f"{name} {direct:.2f} -> {proxied:.2f} (+{proxied - direct:.2f})")
    cells.append(f"proxy's CPU {cpu * 1000 / (len(times[0]) + WARM_UP):.2f}")
    print(f"{what:<26}" + ", ".join(cells) + " ms", flush=True)


async def measure(
    ports: tuple[int, int], proxy: int, requests: int, seconds: float, rounds: int
) -> None:
    before = cpu_seconds(proxy)
    times = await added(ports, requests, "whole", lambda taken: taken[1])
    show("call, not streamed", times, cpu_seconds(proxy) - before)
    before = cpu_seconds(proxy)
    times = await added(ports, requests, "slow", lambda taken: taken[0])
    show("stream, to the first text", times, cpu_seconds(proxy) - before)
    before, done = cpu_seconds(proxy), 0
    rates: list[list[float]] = [[], []]
    for _ in range(rounds):
        for side, port in enumerate(ports):
            streams, taken = await throughput(port, seconds)
            rates[side].append(streams / taken)
            done += streams * side
    direct, proxied = map(statistics.median, rates)
    cpu = (cpu_seconds(proxy) - before) / done * 1000
    print(
        f"{STREAMS} streams at once       requests per second: direct {direct:.0f}, "
        f"proxied {proxied:.0f}; proxy's CPU {cpu:.2f} ms a request",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mock", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mock:
        asyncio.run(mock())
        return
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load before the run {load}", flush=True)
    with tempfile.TemporaryDirectory() as place:
        home = {**os.environ, "HARNESS_ADAPTERS_HOME": place, "HARNESS_ADAPTERS_AUDIT": place}
        upstream = subprocess.Popen(
            [sys.executable, __file__, "--mock"], stdout=subprocess.PIPE, text=True
        )
        assert upstream.stdout is not None
        port = int(upstream.stdout.readline())
        program = "from harness_adapters.cli.main import main; main()"
        words = ["guard", "serve", "--upstream", f"http://127.0.0.1:{port}", "--deny", r"\brm\b"]
        words += ["--log", str(Path(place, "audit.jsonl"))]
        proxy = subprocess.Popen(
            [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True, env=home
        )
        assert proxy.stdout is not None
        try:
            own = int(proxy.stdout.readline().rsplit(":", 1)[1])
            counts = options.requests, options.seconds, options.rounds
            asyncio.run(measure((port, own), proxy.pid, *counts))
        finally:
            for process in (proxy, upstream):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
