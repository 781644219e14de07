"""Attaching to somebody else's server: a stand-in that answers as vLLM 0.32 does.

The real one is in test_vllm_server.py; this is for what a single real server can't be.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from harness_adapters.engine import BASE, Sampling
from harness_adapters.engine.vllm_server import VllmEngine
from harness_adapters.errors import EngineError

GREEDY = Sampling(0.0, 1)


@dataclass
class StandIn:
    """What the server holds and was asked for."""

    root: str
    served_name: str = "base"
    runtime_loading: bool = True
    loaded: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def app(self) -> Starlette:
        routes = [
            Route("/v1/models", self.models),
            Route("/v1/completions", self.complete, methods=["POST"]),
        ]
        if self.runtime_loading:
            routes += [
                Route("/v1/load_lora_adapter", self.load, methods=["POST"]),
                Route("/v1/unload_lora_adapter", self.unload, methods=["POST"]),
            ]
        return Starlette(routes=routes, exception_handlers={404: self.missing})

    async def missing(self, request: Request, error: Exception) -> Response:
        return _error(404, "Not Found")

    async def models(self, request: Request) -> Response:
        base: dict[str, Any] = {"id": self.served_name, "root": self.root, "parent": None}
        cards = [base | {"max_model_len": 1024}]
        for name, path in self.loaded.items():
            cards.insert(0, {"id": name, "root": path, "parent": self.served_name})
        return JSONResponse({"data": cards})

    async def complete(self, request: Request) -> Response:
        body = await request.json()
        self.asked.append(body["model"])
        if body["model"] not in (self.served_name, *self.loaded):
            return _error(404, f"The model `{body['model']}` does not exist.")
        choice = {"token_ids": [7], "logprobs": {"token_logprobs": [-1.0]}, "finish_reason": "stop"}
        return JSONResponse({"choices": [choice], "usage": {}})

    async def load(self, request: Request) -> Response:
        body = await request.json()
        await asyncio.sleep(0.02)
        if body["lora_name"] in self.loaded:
            return _error(400, f"The lora adapter '{body['lora_name']}' has already been loaded.")
        if not Path(body["lora_path"], "adapter_model.safetensors").exists():
            return _error(404, f"No adapter found for {body['lora_path']}")
        self.loaded[body["lora_name"]] = body["lora_path"]
        return PlainTextResponse("Success")

    async def unload(self, request: Request) -> Response:
        name = (await request.json())["lora_name"]
        if name not in self.loaded:
            return _error(404, f"The lora adapter '{name}' cannot be found.")
        del self.loaded[name]
        return PlainTextResponse("Success")


def _error(code: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "code": code}}, status_code=code)


@asynccontextmanager
async def serving(stand_in: StandIn) -> AsyncIterator[StandIn]:
    running = uvicorn.Server(uvicorn.Config(stand_in.app(), log_level="critical", lifespan="off"))
    listener = socket.create_server(("127.0.0.1", 0))
    stand_in.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    task = asyncio.create_task(running.serve(sockets=[listener]))
    try:
        yield stand_in
    finally:
        running.should_exit = True
        await task


@pytest_asyncio.fixture
async def server(model: Path) -> AsyncIterator[StandIn]:
    async with serving(StandIn(root=str(model))) as stand_in:
        yield stand_in


@pytest.fixture
def model(tmp_path: Path) -> Path:
    directory = tmp_path / "model"
    directory.mkdir()
    return directory


def adapter(directory: Path) -> Path:
    directory.mkdir()
    (directory / "adapter_config.json").write_text("{}")
    (directory / "adapter_model.safetensors").write_text("")
    return directory


async def test_the_wanted_model_is_taken(server: StandIn, model: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(model)
    server.served_name = "something"
    for root in (str(model), str(tmp_path / "alias"), f"{model}/"):
        server.root = root
        engine = await VllmEngine.attach(f"{server.url}/v1/", model, end_ids=[2])
        assert (await engine.generate([1, 2], sampling=GREEDY)).output_ids == [7]
        await engine.close()
    assert server.asked == ["something"] * 3


async def test_another_model_is_refused(server: StandIn, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    server.root = str(other)
    with pytest.raises(EngineError) as caught:
        await VllmEngine.attach(server.url, model, end_ids=[2])
    assert f"serves {other}" in str(caught.value) and f"wants {model}" in str(caught.value)


async def test_repositories_of_the_hub_are_told_apart(server: StandIn, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--Owner--the-model" / "snapshots" / "0a1b"
    snapshot.mkdir(parents=True)
    server.root = "owner/other-model"
    with pytest.raises(EngineError, match="serves owner/other-model"):
        await VllmEngine.attach(server.url, snapshot, end_ids=[2])
    for same in ("Owner/the-model", "/there/models--Owner--the-model/snapshots/ffff"):
        server.root = same
        await (await VllmEngine.attach(server.url, snapshot, end_ids=[2])).close()


@pytest.mark.parametrize("root", ["/mnt/of/another/machine", "owner/name", "my-model", ""])
async def test_names_that_cannot_tell_pass(server: StandIn, model: Path, root: str) -> None:
    server.root = root
    await (await VllmEngine.attach(server.url, model, end_ids=[2])).close()


async def test_two_runs_share_a_server(server: StandIn, model: Path, tmp_path: Path) -> None:
    first = await VllmEngine.attach(server.url, model, end_ids=[2])
    second = await VllmEngine.attach(server.url, model, end_ids=[2])
    a, b = adapter(tmp_path / "a"), adapter(tmp_path / "b")
    await first.load_adapter("pi-v1", a)
    await second.load_adapter("pi-v1", b)
    assert sorted(server.loaded.values()) == [str(a), str(b)]
    for engine, path in ((first, a), (second, b)):
        await engine.generate([1], adapter="pi-v1", sampling=GREEDY)
        assert server.loaded[server.asked[-1]] == str(path)
        await engine.generate([1], adapter=BASE, sampling=GREEDY)
        assert server.asked[-1] == "base"
    await first.load_adapter("pi-v2", b)
    await first.unload_adapter("pi-v1")
    with pytest.raises(EngineError, match="'pi-v1' is not loaded"):
        await first.generate([1], adapter="pi-v1", sampling=GREEDY)
    await first.close()
    assert list(server.loaded.values()) == [str(b)]
    await second.generate([1], adapter="pi-v1", sampling=GREEDY)
    await second.close()
    assert server.loaded == {}


async def test_a_run_goes_on_beside_what_a_killed_one_left(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    path = adapter(tmp_path / "a")
    killed = await VllmEngine.attach(server.url, model, end_ids=[2])
    await killed.load_adapter("pi-v1", path)
    await killed._http.aclose()
    engine = await VllmEngine.attach(server.url, model, end_ids=[2])
    await engine.load_adapter("pi-v1", path)
    await engine.generate([1], adapter="pi-v1", sampling=GREEDY)
    await engine.close()
    assert len(server.loaded) == 1


async def test_close_takes_out_what_it_can(server: StandIn, model: Path, tmp_path: Path) -> None:
    engine = await VllmEngine.attach(server.url, model, end_ids=[2])
    for name in ("pi-v1", "pi-v2", "pi-v3"):
        await engine.load_adapter(name, adapter(tmp_path / name))
    server.loaded.pop(next(name for name in server.loaded if name.endswith("pi-v1")))
    loading = asyncio.create_task(engine.load_adapter("pi-v4", adapter(tmp_path / "pi-v4")))
    await asyncio.sleep(0.01)
    loading.cancel()
    await asyncio.wait([loading])
    await asyncio.sleep(0.05)
    await engine.close()
    assert server.loaded == {}


async def test_loading_again_is_harmless(server: StandIn, model: Path, tmp_path: Path) -> None:
    engine = await VllmEngine.attach(server.url, model, end_ids=[2])
    path = adapter(tmp_path / "a")
    (tmp_path / "alias").symlink_to(path)
    same = (path, tmp_path / "alias", path / ".." / "a")
    await asyncio.gather(*(engine.load_adapter("pi-v1", p) for p in same))
    assert list(server.loaded.values()) == [str(path)]
    with pytest.raises(EngineError, match="'pi-v1' is taken"):
        await engine.load_adapter("pi-v1", adapter(tmp_path / "b"))
    with pytest.raises(EngineError, match="'base' is taken"):
        await engine.load_adapter(BASE, path)
    await engine.close()


async def test_a_server_without_runtime_loading(model: Path, tmp_path: Path) -> None:
    async with serving(StandIn(root=str(model), runtime_loading=False)) as server:
        engine = await VllmEngine.attach(server.url, model, end_ids=[2])
        with pytest.raises(EngineError, match="VLLM_ALLOW_RUNTIME_LORA_UPDATING=1") as caught:
            await engine.load_adapter("pi-v1", adapter(tmp_path / "a"))
        assert "--enable-lora" in str(caught.value)
        await engine.close()


async def test_an_adapter_that_the_server_cannot_see(
    server: StandIn, model: Path, tmp_path: Path
) -> None:
    engine = await VllmEngine.attach(server.url, model, end_ids=[2])
    (adapter(tmp_path / "a") / "adapter_model.safetensors").unlink()
    with pytest.raises(EngineError, match="No adapter found for"):
        await engine.load_adapter("pi-v1", tmp_path / "a")
    await engine.close()


async def test_a_server_that_died_does_not_keep_a_run_from_ending(
    model: Path, tmp_path: Path
) -> None:
    script = f"""
import asyncio, uvicorn, socket
from pathlib import Path
from engine.test_vllm_attach import StandIn
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(StandIn(root={str(model)!r}).app(), log_level="critical", lifespan="off")
uvicorn.Server(config).run(sockets=[listener])
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script,
        stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    assert process.stdout is not None
    url = f"http://127.0.0.1:{int(await process.stdout.readline())}"
    engine = await VllmEngine.attach(url, model, end_ids=[2])
    await engine.load_adapter("pi-v1", adapter(tmp_path / "a"))
    process.kill()
    await process.wait()
    async with asyncio.timeout(5):
        await engine.close()
