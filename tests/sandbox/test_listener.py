from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import BwrapSandbox

from .conftest import answering

ASK = "exec 3<>/dev/tcp/127.0.0.1/8080; echo $0 >&3; cat <&3"


async def test_two_sandboxes_on_one_port_have_each_their_own_server(lower: Path) -> None:
    heard: dict[str, list[str]] = {"left": [], "right": []}

    async def session(name: str) -> bytes:
        async with BwrapSandbox([lower]) as box:
            result = await box.exec(
                ["/bin/bash", "-c", f"{ASK}; sleep 0.3; {ASK}", name],
                env={},
                timeout=20,
                serve=answering(f"you are {name}", heard[name]),
            )
            return result.stdout

    answers = await asyncio.gather(session("left"), session("right"))
    assert answers == [b"you are left\n" * 2, b"you are right\n" * 2]
    assert heard == {
        "left": ["left", "left", "stopped"],
        "right": ["right", "right", "stopped"],
    }


async def test_the_host_itself_cannot_reach_the_listener(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        with socket.socket() as reserved:
            reserved.bind(("127.0.0.1", 0))
            port = reserved.getsockname()[1]
        running = asyncio.create_task(
            box.exec(
                ["/bin/bash", "-c", f"{ASK.replace('8080', str(port))}; sleep 1"],
                env={},
                timeout=20,
                serve=answering("inside"),
                port=port,
            )
        )
        await asyncio.sleep(0.3)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert (await running).stdout == b"inside\n"


async def test_serving_ends_on_timeout_and_cancellation(lower: Path) -> None:
    async with BwrapSandbox([lower]) as box:
        heard: list[str] = []
        result = await box.exec(
            ["/bin/sleep", "60"], env={}, timeout=0.3, serve=answering("x", heard)
        )
        assert result.timed_out and heard == ["stopped"]
        heard.clear()
        running = asyncio.create_task(
            box.exec(["/bin/sleep", "60"], env={}, timeout=60, serve=answering("x", heard))
        )
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert heard == ["stopped"]


async def test_a_server_that_fails_to_start_ends_the_command(lower: Path) -> None:
    async def broken(listener: socket.socket) -> Callable[[], Awaitable[None]]:
        raise RuntimeError("no gateway")

    async with BwrapSandbox([lower]) as box:
        with pytest.raises(RuntimeError, match="no gateway"):
            await box.exec(["/bin/touch", "ran"], env={}, timeout=20, serve=broken)
        # The command never started.
        result = await box.exec(["/bin/ls", "ran"], env={}, timeout=20)
        assert result.returncode != 0
        with pytest.raises(SandboxError, match="network"):
            await box.exec(["true"], env={}, timeout=5, serve=answering("x"), network=True)
