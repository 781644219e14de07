"""What the tape holds of a session, and what of a request counts."""

import time

import pytest

from gateway.support import (
    END,
    TOOLS,
    USER,
    CharacterChat,
    Recording,
    ask,
    body,
    call,
    client,
    make_gateway,
    spec,
)
from harness_adapters.engine import Sampling
from harness_adapters.errors import EngineError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.records import Decision, SessionEnd

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


async def test_a_scripted_engine_runs_dry_with_an_error():
    engine = ScriptedEngine(CHAT)
    engine.script("s", ["a"])
    sampling = Sampling(temperature=1.0, max_tokens=10)
    done = await engine.generate([1], sampling=sampling, session="s")
    assert (done.output_ids, done.finish) == ([97, END], "stop")
    with pytest.raises(EngineError, match="no scripted reply"):
        await engine.generate([1], sampling=sampling, session="s")
