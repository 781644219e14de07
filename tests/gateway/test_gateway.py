import asyncio
import itertools
import json
import re
import time

import httpx
import pytest

from gateway.support import (
    BUDGET,
    END,
    TOOLS,
    CharacterChat,
    ask,
    body,
    call,
    client,
    make_gateway,
    spec,
)
from harness_adapters.engine import Sampling
from harness_adapters.errors import ContextError, EngineError
from harness_adapters.gateway import listener
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.records import Decision, SessionEnd

USER = {"role": "user", "content": "hi"}
CHAT = CharacterChat()


async def test_the_tape_holds_what_the_engine_saw_and_sampled(tmp_path):
    reply = "I will.\n" + call("bash", command="ls")
    gateway = make_gateway(tmp_path, {"s1": [reply]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    (turn,) = tape.turns
    assert turn.prompt_ids == CHAT.render([USER], TOOLS)
    assert turn.output_ids == [*CHAT.encode(reply), END]
    assert turn.logprobs == [0.0] * len(turn.output_ids)
    assert turn.text == reply + "<end>"
    assert (turn.adapter, turn.version, turn.finish, turn.index) == ("pi-v3", 3, "stop", 0)
    assert turn.new_messages == [USER]
    assert abs(turn.started - time.time()) < 10
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "I will."
    function = choice["message"]["tool_calls"][0]["function"]
    assert function == {"name": "bash", "arguments": '{"command": "ls"}'}
    assert turn.calls[0].verdict.decision is Decision.ALLOW
    assert (tape.end, tape.model_calls) == (None, 1)


class Recording(ScriptedEngine):
    """Remembers how it was asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked = []

    async def generate(self, prompt_ids, *, adapter="base", sampling, session=""):
        self.asked.append((adapter, sampling, session))
        return await super().generate(
            prompt_ids, adapter=adapter, sampling=sampling, session=session
        )


async def test_model_and_sampling_are_pinned(tmp_path):
    engine = Recording(CHAT)
    gateway = make_gateway(tmp_path, {"s1": ["a", "b"]}, engine=engine)
    async with client(gateway, gateway.open(spec())) as http:
        await ask(http, USER, temperature=0.0, top_p=0.1, seed=1, model="gpt-9", max_tokens=50)
        await ask(http, USER, max_completion_tokens=60)
    first, second = engine.asked
    assert first[0] == "pi-v3"
    assert (first[1].temperature, first[1].max_tokens) == (0.7, 50)
    assert second[1].max_tokens == 60
    assert first[1].seed != second[1].seed, "turns must not share a random stream"
    assert first[2] == "s1"


async def test_the_same_seed_gives_the_same_turn_seeds(tmp_path):
    engine = Recording(CHAT)
    gateway = make_gateway(tmp_path, {"s1": ["a"], "s2": ["a"], "s3": ["a"]}, engine=engine)
    for session, seed in (("s1", 5), ("s2", 5), ("s3", None)):
        async with client(gateway, gateway.open(spec(session, seed=seed))) as http:
            await ask(http, USER)
    seeds = [sampling.seed for _, sampling, _ in engine.asked]
    assert seeds[0] == seeds[1] is not None
    assert seeds[2] is None


@pytest.mark.parametrize(
    ("per_turn", "session_room", "context_room", "asked", "granted"),
    [
        (100, 1000, 1000, None, 100),
        (100, 1000, 1000, 40, 40),
        (100, 30, 1000, None, 30),
        (100, 30, 20, 90, 20),
        (100, 1, 1000, None, 1),
    ],
)
async def test_max_tokens_is_what_budget_and_context_leave(
    tmp_path, per_turn, session_room, context_room, asked, granted
):
    prompt = len(CHAT.render([USER], TOOLS))
    engine = Recording(CHAT, max_context=prompt + context_room)
    gateway = make_gateway(tmp_path, {"s1": ["x" * 500]}, engine=engine)
    limits = {"max_tokens_per_turn": per_turn, "max_session_tokens": prompt + session_room}
    tape = gateway.open(spec(budget=BUDGET.model_copy(update=limits)))
    async with client(gateway, tape) as http:
        choice = await ask(http, USER, **({"max_tokens": asked} if asked else {}))
    assert engine.asked[0][1].max_tokens == granted
    assert len(tape.turns[0].output_ids) == granted
    assert choice["finish_reason"] == tape.turns[0].finish == "length"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("budget", "context", "end"),
    [
        ({"max_session_tokens": 50}, 300_000, SessionEnd.BUDGET),
        ({}, 50, SessionEnd.CONTEXT),
    ],
)
async def test_without_room_the_session_ends_in_plain_text(tmp_path, budget, context, end, stream):
    gateway = make_gateway(tmp_path, {"s1": ["never"]}, max_context=context)
    tape = gateway.open(spec(budget=BUDGET.model_copy(update=budget)))
    async with client(gateway, tape) as http:
        answer = await http.post("/v1/chat/completions", json=body(stream=stream))
        assert answer.status_code == 200
        assert "Stopping here." in answer.text
        assert '"tool_calls"' not in answer.text
        assert ('"finish_reason": "stop"') in answer.text
    assert tape.end is end
    assert tape.turns == []


async def test_the_turn_budget_ends_the_session_and_nothing_more_is_recorded(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": itertools.repeat(call("bash", command="ls"))})
    tape = gateway.open(spec(budget=BUDGET.model_copy(update={"max_turns": 2})))
    async with client(gateway, tape) as http:
        choices = [await ask(http, USER) for _ in range(4)]
    assert [c["finish_reason"] for c in choices] == ["tool_calls", "tool_calls", "stop", "stop"]
    assert choices[2]["message"] == choices[3]["message"]
    assert choices[2]["message"]["content"]
    assert tape.end is SessionEnd.BUDGET
    assert (len(tape.turns), tape.model_calls) == (2, 4)


@pytest.mark.parametrize(
    ("failure", "end"),
    [
        (EngineError("the engine is dead"), SessionEnd.API_ERROR),
        (RuntimeError("a fault of ours"), SessionEnd.API_ERROR),
        (ContextError("too long"), SessionEnd.CONTEXT),
    ],
)
async def test_an_engine_failure_ends_the_session_in_plain_text(tmp_path, failure, end):
    gateway = make_gateway(tmp_path, {"s1": [failure, "never"]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        first, second = await ask(http, USER), await ask(http, USER)
    assert first["finish_reason"] == second["finish_reason"] == "stop"
    assert first["message"]["content"] == second["message"]["content"] != ""
    assert tape.end is end
    assert tape.turns == []
    if end is SessionEnd.API_ERROR:
        assert str(failure) in tape.error


async def test_a_lost_logprob_is_an_engine_failure(tmp_path):
    class Short(ScriptedEngine):
        async def generate(self, prompt_ids, **options):
            done = await super().generate(prompt_ids, **options)
            return type(done)(done.output_ids, done.logprobs[1:], "stop", 0, 0.0)

    gateway = make_gateway(tmp_path, {"s1": ["hello"]}, engine=Short(CHAT))
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        await ask(http, USER)
    assert tape.end is SessionEnd.API_ERROR
    assert "log-probabilities" in tape.error


async def test_auxiliary_requests_are_answered_and_never_recorded(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": ["real"]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        plain = await ask(http, USER, tools=None)
        empty = await http.post("/v1/chat/completions", json=body() | {"tools": []})
        assert empty.status_code == 200
        real = await ask(http, USER)
    assert plain["message"]["content"]
    assert plain["finish_reason"] == "stop"
    assert real["message"]["content"] == "real"
    assert (tape.auxiliary_calls, tape.model_calls, len(tape.turns)) == (2, 1, 1)


async def test_only_the_new_messages_of_a_turn_are_kept(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": ["a", "b"]})
    tape = gateway.open(spec())
    later = [{"role": "assistant", "content": "a"}, {"role": "user", "content": "more"}]
    async with client(gateway, tape) as http:
        await ask(http, USER)
        await ask(http, USER, *later)
    assert tape.turns[1].new_messages == later


async def test_malformed_calls_go_out_as_written_and_are_counted(tmp_path):
    broken = '```json\n{"name": "bash", "arguments": {"command": "ls}\n```'
    nameless = "```json\n{oops\n```"
    gateway = make_gateway(tmp_path, {"s1": [broken, nameless]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        first, second = await ask(http, USER), await ask(http, USER)
    function = first["message"]["tool_calls"][0]["function"]
    assert function["name"] == "bash"
    with pytest.raises(json.JSONDecodeError):
        json.loads(function["arguments"])
    assert "tool_calls" not in second["message"]
    assert "oops" in second["message"]["content"]
    assert [c.malformed for turn in tape.turns for c in turn.calls] == [True, True]


DENY_RM = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])


async def test_a_blocked_call_is_replaced_by_a_notice(tmp_path):
    reply = f"Both.\n{call('bash', command='rm x')}\n{call('bash', command='ls')}"
    gateway = make_gateway(tmp_path, {"s1": [reply, call("bash", command="rm y")]}, policy=DENY_RM)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        mixed, alone = await ask(http, USER), await ask(http, USER)
    sent = [c["function"]["arguments"] for c in mixed["message"]["tool_calls"]]
    assert sent == ['{"command": "ls"}']
    assert "Both." in mixed["message"]["content"]
    assert "deleting is not allowed" in mixed["message"]["content"]
    assert alone["finish_reason"] == "stop"
    assert "tool_calls" not in alone["message"]
    assert [c.verdict.decision for c in tape.turns[0].calls] == [Decision.BLOCK, Decision.ALLOW]
    assert tape.turns[0].text == reply + "<end>", "the sampled tokens stay whole"
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(x["turn"], x["decision"], x["rule"]) for x in lines] == [
        (0, "block", "no-rm"),
        (0, "allow", "no-pattern"),
        (1, "block", "no-rm"),
    ]


async def test_a_policy_that_breaks_allows_nothing(tmp_path):
    class Broken:
        def judge(self, proposed):
            raise KeyError(proposed.name)

    gateway = make_gateway(tmp_path, {"s1": [call("bash", command="ls")]}, policy=Broken())
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert "tool_calls" not in choice["message"]
    assert tape.turns[0].calls[0].verdict.rule == "guard-error"
    assert tape.end is None


async def test_an_audit_log_that_cant_be_written_ends_the_session(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": [call("bash", command="ls")]})
    gateway.audit.close()
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert "tool_calls" not in choice["message"]
    assert tape.end is SessionEnd.API_ERROR


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


async def test_requests_of_one_session_are_taken_one_at_a_time(tmp_path):
    engine = ScriptedEngine(CHAT, delay=0.05)
    gateway = make_gateway(tmp_path, {"s1": ["a", "b", "c"]}, engine=engine)
    tape = gateway.open(spec(budget=BUDGET.model_copy(update={"max_turns": 2})))
    async with client(gateway, tape) as http:
        await asyncio.gather(*(ask(http, USER) for _ in range(5)))
    assert [turn.index for turn in tape.turns] == [0, 1]
    assert tape.end is SessionEnd.BUDGET


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


async def test_a_scripted_engine_runs_dry_with_an_error():
    engine = ScriptedEngine(CHAT)
    engine.script("s", ["a"])
    sampling = Sampling(temperature=1.0, max_tokens=10)
    done = await engine.generate([1], sampling=sampling, session="s")
    assert (done.output_ids, done.finish) == ([97, END], "stop")
    with pytest.raises(EngineError, match="no scripted reply"):
        await engine.generate([1], sampling=sampling, session="s")
