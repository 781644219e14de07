"""Room, budgets and failures: how the gateway ends a session."""

import asyncio
import itertools

import pytest

from gateway.support import (
    BUDGET,
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
from harness_adapters.errors import ContextError, EngineError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.records import SessionEnd

CHAT = CharacterChat()


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


async def test_requests_of_one_session_are_taken_one_at_a_time(tmp_path):
    engine = ScriptedEngine(CHAT, delay=0.05)
    gateway = make_gateway(tmp_path, {"s1": ["a", "b", "c"]}, engine=engine)
    tape = gateway.open(spec(budget=BUDGET.model_copy(update={"max_turns": 2})))
    async with client(gateway, tape) as http:
        await asyncio.gather(*(ask(http, USER) for _ in range(5)))
    assert [turn.index for turn in tape.turns] == [0, 1]
    assert tape.end is SessionEnd.BUDGET
