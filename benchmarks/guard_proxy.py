"""What the audit proxy costs: direct and proxied requests to one local mock, side by side.

    python benchmarks/guard_proxy.py --requests 1000 --seconds 10 [--litellm VENV] [--nah VENV]

Processes: the mock (canned bytes, no parsing), the proxy as users start it with the shipped rules,
a bare pass-through (uvicorn, httpx) that reads nothing of what it forwards, LiteLLM's proxy where a
virtual environment with `litellm[proxy]` is named, and this client. All take turns on one
connection each, so that all see the same machine; what a proxy adds is the difference of quantiles
to the direct ones. An answer that isn't streamed carries one call, a stream 16 text deltas and one
call in 4 pieces; the audit proxy judges and logs every call. Throughput: 64 connections that ask
again as soon as their stream has ended. With `--nah`, the time and the verdicts of single decisions
follow (`guard_decisions.py`).

On a machine with other work all of these measure that work, too. The CPU time of each proxy for a
request is printed beside them; it depends less on who else is running.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.proxy.serving import fastest_loop

STREAMS = 64
STARTING_SECONDS = 600
"""For LiteLLM, whose imports alone take many seconds."""
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
                _, _, length = asked.lower().partition(b"content-length: ")
                kind = await reader.readexactly(int(length.split(b"\r\n")[0] or 0))
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


async def bare(upstream: int) -> None:
    """Print an address and forward: as little as these libraries can do."""
    import httpx
    from starlette.types import Receive, Scope, Send

    from harness_adapters.proxy.serving import address_of, listening, serve

    async def forward(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        request = http.build_request("POST", scope["path"], content=body)
        response = await http.send(request, stream=True)
        headers = [(k, v) for k, v in response.headers.raw if k.lower() != b"transfer-encoding"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for data in response.aiter_raw():
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await response.aclose()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    sock = listening("127.0.0.1", 0)
    print(address_of(sock), flush=True)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=STREAMS)
    address = f"http://127.0.0.1:{upstream}"
    async with httpx.AsyncClient(base_url=address, trust_env=False, limits=limits) as http:
        await serve(forward, sock)


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
        said = [{"role": "user", "content": kind}]
        asked = {"model": "mock", "messages": said, "stream": kind != "whole"}
        body = json.dumps(asked).encode()
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
                more = await self._reader.read(1 << 16)
                assert more, got
                got += more
        assert b"call_1" in got, got
        return first - start, time.perf_counter() - start

    def close(self) -> None:
        """Close it."""
        self._writer.close()


async def alternating(
    ports: list[int], requests: int, kind: str, pick: Callable[[tuple[float, float]], float]
) -> list[list[float]]:
    """Milliseconds of requests to each port; they take turns."""
    sides = [await Connection(port).open() for port in ports]
    times: list[list[float]] = [[] for _ in ports]
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


@dataclass
class Side:
    """Something that listens."""

    name: str
    process: int
    port: int

    def cpu_seconds(self) -> float:
        """User and system time so far; fields 14 and 15 of proc(5)'s stat."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(times: list[float], share: float) -> float:
    return sorted(times)[int(share * len(times))]


async def measure(sides: list[Side], requests: int, seconds: float, rounds: int) -> None:
    ports = [side.port for side in sides]
    print(f"{'':<28}{'p50':>8}{'added':>8}{'p99':>8}{'added':>8}{'CPU':>8}   (ms)")
    for what, kind, pick in (
        ("a call, not streamed", "whole", lambda taken: taken[1]),
        ("to a stream's first text", "slow", lambda taken: taken[0]),
    ):
        before = [side.cpu_seconds() for side in sides]
        times = await alternating(ports, requests, kind, pick)
        print(what)
        for side, began, own in zip(sides, before, times, strict=True):
            cells = ""
            for share in (0.5, 0.99):
                value = quantile(own, share)
                cells += f"{value:>8.2f}{value - quantile(times[0], share):>+8.2f}"
            cpu = (side.cpu_seconds() - began) / (requests + WARM_UP) * 1000
            print(f"  {side.name:<26}{cells}{cpu:>8.2f}", flush=True)
    print(f"{STREAMS} streams at once{'':<10}{'requests/s':>16}{'CPU':>24}   (ms)")
    for side in sides:
        rates, before, done = [], side.cpu_seconds(), 0
        for _ in range(rounds):
            streams, taken = await throughput(side.port, seconds)
            rates.append(streams / taken)
            done += streams
        cpu = (side.cpu_seconds() - before) / done * 1000
        print(f"  {side.name:<26}{statistics.median(rates):>16.0f}{cpu:>24.2f}", flush=True)


def litellm(venv: Path, upstream: int, place: Path) -> tuple[subprocess.Popen[bytes], int]:
    """LiteLLM's proxy before the mock, once it answers; its own output goes to a file."""
    model = {"model": "openai/mock", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "x"}
    config = place / "litellm.json"  # JSON is YAML
    config.write_text(json.dumps({"model_list": [{"model_name": "mock", "litellm_params": model}]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    # Without the first two it asks the network for prices and reports its use. No key: neither has
    # the other proxy one, and both listen to this machine alone.
    alone = {
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_TELEMETRY": "False",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    with (place / "litellm.log").open("wb") as log:
        process = subprocess.Popen(
            [venv.absolute() / "bin" / "litellm", *words, "--telemetry", "False"],
            stdout=log,
            stderr=log,
            cwd=place,
            env={**os.environ, **alone},
        )
    end = time.monotonic() + STARTING_SECONDS
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return process, port
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            sys.exit(f"LiteLLM didn't start:\n{(place / 'litellm.log').read_text()[-2000:]}")
        time.sleep(0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--litellm", type=Path, help="venv with litellm[proxy]")
    parser.add_argument("--nah", type=Path, help="venv with nah, for decisions")
    parser.add_argument("--mock", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.mock:
        asyncio.run(mock())
        return
    if options.bare:
        with asyncio.Runner(loop_factory=fastest_loop()) as runner:
            runner.run(bare(options.bare))
        return
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{os.cpu_count()} cores, load before the run {load}", flush=True)
    with tempfile.TemporaryDirectory() as place, ExitStack() as running:
        home = {**os.environ, "HARNESS_ADAPTERS_HOME": place, "HARNESS_ADAPTERS_AUDIT": place}

        def start(name: str, *words: str) -> Side:
            process = subprocess.Popen(
                [sys.executable, *words], stdout=subprocess.PIPE, text=True, env=home
            )
            running.callback(process.wait)
            running.callback(process.terminate)
            assert process.stdout is not None
            return Side(name, process.pid, int(process.stdout.readline().rpartition(":")[2]))

        direct = start("direct", __file__, "--mock")
        program = "from harness_adapters.cli.main import main; main()"
        words = ["guard", "serve", "--upstream", f"http://127.0.0.1:{direct.port}"]
        words += ["--log", str(Path(place, "audit.jsonl")), "--workdir", "/app"]
        sides = [
            direct,
            start("bare pass-through", __file__, "--bare", str(direct.port)),
            start("audit proxy", "-c", program, *words),
        ]
        if options.litellm is not None:
            process, port = litellm(options.litellm, direct.port, Path(place))
            running.callback(process.wait)
            running.callback(process.terminate)
            sides.append(Side("LiteLLM's proxy", process.pid, port))
        asyncio.run(measure(sides, options.requests, options.seconds, options.rounds))
    if options.nah is not None:
        decisions = [Path(__file__).with_name("guard_decisions.py"), "--nah", options.nah]
        subprocess.run([sys.executable, *decisions], check=True)


if __name__ == "__main__":
    main()
