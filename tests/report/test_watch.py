import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from harness_adapters.config import Settings
from harness_adapters.proxy.serving import address_of, listening, server_of
from harness_adapters.records import Phase
from harness_adapters.report.watch import Watch
from harness_adapters.store import Store

from .browser import browse
from .synthetic import make_rollout, make_run


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """Address and run directory of a `watch` whose run has not begun."""
    root = tmp_path / "run"
    with listening("127.0.0.1", 0) as sock:
        server = server_of(Watch(root).app)
        task = asyncio.create_task(server.serve(sockets=[sock]))
        yield address_of(sock), root
        server.should_exit = True
        await task


async def test_the_page_follows_the_run(served: tuple[str, Path]) -> None:
    address, root = served
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        waiting = await client.get("/")
        assert "Nothing to show yet" in waiting.text
        assert "is not a run directory" in waiting.text
        first = (await client.get("/version")).text
        assert f'data-version="{first}"' in waiting.text

        make_run(root, steps=2, tasks=6, groups=1, finished=False)
        second = (await client.get("/version")).text
        assert second != first
        page = await client.get("/")
        assert "connect-src 'self'" in page.text
        assert f"2 of {Settings().train.steps} training steps" in page.text
        assert " · live" in page.text

        store = Store(root)
        store.add(
            make_rollout(random.Random(1), phase=Phase.TEST, arm="base", family="csv_sum",
                         level=1, instance=900, chance=1.0, started=2e9)
        )  # fmt: skip
        assert (await client.get("/version")).text != second
        assert "csv_sum-1-900" in (await client.get("/")).text
        store.close()


async def test_nobody_else_is_asked_for_anything(served: tuple[str, Path]) -> None:
    address, _ = served
    async with httpx.AsyncClient(base_url=address) as client:
        assert (await client.get("/../run.sqlite")).status_code == 404
        assert (await client.post("/")).status_code == 405


async def test_a_browser_opens_the_live_page_without_a_complaint(
    served: tuple[str, Path], tmp_path: Path, chromium: str
) -> None:
    address, root = served
    make_run(root, steps=2, tasks=6, groups=1)
    dom, console = await asyncio.to_thread(browse, chromium, f"{address}/", tmp_path / "profile")
    assert [line for line in console.splitlines() if "favicon" not in line] == []
    assert 'id="sessions"' in dom
