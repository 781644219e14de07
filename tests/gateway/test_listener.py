"""HTTP: errors, limits, streams that wait, clients that leave, many sessions at once."""

import asyncio
import itertools
import time

import httpx
import pytest

from gateway.support import USER, CharacterChat, ask, body, call, client, make_gateway, spec
from harness_adapters.gateway import listener
from harness_adapters.gateway.scripted import ScriptedEngine

CHAT = CharacterChat()


@pytest.mark.parametrize("stream", [False, True])
async def test_what_cant_be_served_is_an_openai_error_and_ends_nothing(tmp_path, stream):
    gateway = make_gateway(tmp_path, {"s1": ["fine"]})
    tape = gateway.open(spec())
    refused = {"role": "user", "content": "refuse me"}
    async with client(gateway, tape) as http:
        for answer, status in [
            (await http.post("/v1/chat/completions", content=b"{"), 400),
            (await http.post("/v1/chat/completions", json=body(refused, stream=stream)), 400),
            (await http.post("/v1/completions", json={}), 404),
            (await http.get("/"), 404),
            (await http.get("/v1/chat/completions"), 405),
        ]:
            assert answer.status_code == status
            assert answer.json()["error"]["message"]
        assert (await ask(http, USER))["message"]["content"] == "fine"
    assert tape.end is None


async def test_large_bodies_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_BODY_BYTES", 1000)
    gateway = make_gateway(tmp_path, {"s1": ["fine"]})
    async with client(gateway, gateway.open(spec())) as http:
        answer = await http.post(
            "/v1/chat/completions", json=body({"role": "user", "content": "x" * 2000})
        )
        assert answer.status_code == 413
        assert (await ask(http, USER))["message"]["content"] == "fine"


async def test_models_are_listed(tmp_path):
    gateway = make_gateway(tmp_path, {})
    async with client(gateway, gateway.open(spec())) as http:
        models = (await http.get("/v1/models")).json()
    assert [m["id"] for m in models["data"]] == ["model"]


async def test_a_stream_is_kept_alive_while_the_engine_works(tmp_path):
    engine = ScriptedEngine(CHAT, delay=0.4)
    gateway = make_gateway(
        tmp_path, {"s1": [call("bash", command="ls")]}, engine=engine, keepalive_seconds=0.1
    )
    async with (
        client(gateway, gateway.open(spec())) as http,
        http.stream("POST", "/v1/chat/completions", json=body(stream=True)) as answer,
    ):
        assert answer.headers["content-type"] == "text/event-stream"
        lines = [line async for line in answer.aiter_lines() if line]
    keepalives = list(itertools.takewhile(lambda line: line == ": keepalive", lines))
    assert len(keepalives) >= 2
    events = lines[len(keepalives) :]
    assert len(events) == 4
    assert all(line.startswith("data: ") for line in events)
    assert events[-1] == "data: [DONE]"


class Waiting(ScriptedEngine):
    """Never answers; remembers that it was cancelled."""

    def __init__(self, chat):
        super().__init__(chat)
        self.entered, self.cancelled = asyncio.Event(), asyncio.Event()

    async def generate(self, prompt_ids, *, adapter="base", sampling, session=""):
        self.entered.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_goes_away_cancels_the_engine_request(tmp_path, stream):
    engine = Waiting(CHAT)
    gateway = make_gateway(tmp_path, {}, engine=engine)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        asked = asyncio.create_task(http.post("/v1/chat/completions", json=body(stream=stream)))
        await asyncio.wait_for(engine.entered.wait(), 5)
        asked.cancel()
        await asyncio.wait_for(engine.cancelled.wait(), 5)
    assert (tape.turns, tape.end) == ([], None)


async def test_stopping_cancels_the_engine_request_and_closes_at_once(tmp_path):
    engine = Waiting(CHAT)
    gateway = make_gateway(tmp_path, {}, engine=engine)
    async with client(gateway, gateway.open(spec())) as http:
        asked = asyncio.create_task(http.post("/v1/chat/completions", json=body(stream=True)))
        await asyncio.wait_for(engine.entered.wait(), 5)
        started = time.monotonic()
    assert time.monotonic() - started < 1
    assert engine.cancelled.is_set()
    with pytest.raises(httpx.TransportError):
        await asked


async def test_thirty_two_sessions_stay_apart(tmp_path):
    names = [f"s{i}" for i in range(32)]
    gateway = make_gateway(tmp_path, {n: [f"{n} says {k}" for k in range(3)] for n in names})

    async def session(name):
        tape = gateway.open(spec(name))
        async with client(gateway, tape) as http:
            said = [(await ask(http, USER))["message"]["content"] for _ in range(3)]
        return said, tape

    for name, (said, tape) in zip(names, await asyncio.gather(*map(session, names)), strict=True):
        assert said == [f"{name} says {k}" for k in range(3)]
        assert [turn.text for turn in tape.turns] == [f"{text}<end>" for text in said]


async def test_connections_beyond_the_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 2)
    gateway = make_gateway(tmp_path, {"s1": ["fine"]})
    async with client(gateway, gateway.open(spec())) as http:
        port = http.base_url.port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(httpx.TransportError):
            await ask(http, USER)
        for _, writer in held:
            writer.close()
        await asyncio.sleep(0.05)
        assert (await ask(http, USER))["message"]["content"] == "fine"
