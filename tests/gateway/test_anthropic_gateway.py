"""The gateway on the Anthropic wire: captured, judged and ended as on the OpenAI wire."""

import itertools
import json
import re
import sys

import pytest

from gateway.support import BUDGET, END, TOOLS, CharacterChat, ask, call, client, make_gateway, spec
from harness_adapters.errors import ContextError, EngineError
from harness_adapters.gateway import listener, server
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.records import Decision, SessionEnd

USER = {"role": "user", "content": "hi"}
TOOL = {"name": "bash", "description": "", "input_schema": {"type": "object"}}
CHAT = CharacterChat()
VERSION = {"anthropic-version": "2023-06-01"}


def body(*messages, stream=False, tools=(TOOL,), **more):
    return {
        "model": "claude-x",
        "max_tokens": 4000,
        "messages": list(messages or (USER,)),
        "stream": stream,
        "tools": list(tools),
    } | more


async def post(http, values, path="/v1/messages"):
    return await http.post(path, json=values, headers=VERSION)


async def say(http, *messages, stream=False, **more):
    """The message, put together from its events where it was streamed."""
    answer = await post(http, body(*messages, stream=stream, **more))
    assert answer.status_code == 200, answer.text
    return from_events(answer.text) if stream else answer.json()


def from_events(text):
    events = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: ")]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    message = events[0]["message"]
    for event in events:
        if event["type"] == "content_block_start":
            message["content"].append(event["content_block"])
        elif event["type"] == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "text_delta":
                block["text"] += delta["text"]
            else:
                block["input"] = json.loads(delta["partial_json"])
        elif event["type"] == "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    return message


STREAM = pytest.mark.parametrize("stream", [False, True])


@STREAM
async def test_both_wires_leave_the_same_tape(tmp_path, stream):
    reply = "I will.\n" + call("bash", command="ls")
    gateway = make_gateway(tmp_path, {"a": [reply, "Done."], "o": [reply, "Done."]})
    tapes = {name: gateway.open(spec(name)) for name in "ao"}
    async with client(gateway, tapes["a"]) as http:
        first = await say(http, USER, stream=stream, system="be an agent")
        used = {"role": "assistant", "content": first["content"]}
        told = {"type": "tool_result", "tool_use_id": "call_0_0", "content": "a.txt"}
        later = {"role": "user", "content": [told]}
        last = await say(http, USER, used, later, stream=stream, system="be an agent")
    system = {"role": "system", "content": "be an agent"}
    async with client(gateway, tapes["o"]) as http:
        choice = await ask(http, system, USER)
        result = {"role": "tool", "tool_call_id": "call_0_0", "content": "a.txt"}
        await ask(http, system, USER, choice["message"], result)

    assert first["content"] == [
        {"type": "text", "text": "I will."},
        {"type": "tool_use", "id": "call_0_0", "name": "bash", "input": {"command": "ls"}},
    ]
    assert (first["stop_reason"], last["stop_reason"]) == ("tool_use", "end_turn")
    assert last["content"] == [{"type": "text", "text": "Done."}]
    assert first["model"] == "claude-x"
    a, o = tapes["a"].turns, tapes["o"].turns
    assert a[0].prompt_ids == CHAT.render([system, USER], TOOLS)
    assert a[0].output_ids == [*CHAT.encode(reply), END]
    assert (a[0].adapter, a[0].version) == ("pi-v3", 3), "whatever the agent calls the model"
    assert first["usage"]["input_tokens"] == len(a[0].prompt_ids)
    assert first["usage"]["output_tokens"] == len(a[0].output_ids)
    for mine, other in zip(a, o, strict=True):
        for part in ("prompt_ids", "output_ids", "logprobs", "text", "finish", "calls"):
            assert getattr(mine, part) == getattr(other, part), part
        assert mine.new_messages == other.new_messages
    assert tapes["a"].messages == tapes["o"].messages


@STREAM
async def test_max_tokens_only_goes_down(tmp_path, stream):
    gateway = make_gateway(tmp_path, {"s1": ["x" * 500, "y" * 5000]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        cut = await say(http, stream=stream, max_tokens=40)
        capped = await say(http, stream=stream, max_tokens=100_000)
    assert (cut["stop_reason"], capped["stop_reason"]) == ("max_tokens", "max_tokens")
    assert [len(turn.output_ids) for turn in tape.turns] == [40, BUDGET.max_tokens_per_turn]


@STREAM
async def test_a_blocked_call_is_replaced_by_a_notice(tmp_path, stream):
    deny = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])
    reply = f"Both.\n{call('bash', command='rm x')}\n{call('bash', command='ls')}"
    script = [reply, call("bash", command="rm y")]
    gateway = make_gateway(tmp_path, {"s1": script}, policy=deny)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        mixed, alone = await say(http, stream=stream), await say(http, stream=stream)
    notice, *calls = mixed["content"]
    assert "Both." in notice["text"]
    assert "deleting is not allowed" in notice["text"]
    assert [block["input"] for block in calls] == [{"command": "ls"}]
    assert alone["stop_reason"] == "end_turn"
    assert [block["type"] for block in alone["content"]] == ["text"]
    assert [c.verdict.decision for c in tape.turns[0].calls] == [Decision.BLOCK, Decision.ALLOW]
    assert tape.turns[0].text == reply + "<end>"


async def test_malformed_calls_are_counted_and_go_out_as_written(tmp_path):
    broken = '```json\n{"name": "bash", "arguments": {"command": "ls}\n```'
    gateway = make_gateway(tmp_path, {"s1": [broken, broken]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        streamed = await post(http, body(stream=True))
        whole = await say(http)
    (delta,) = re.findall(r'"partial_json": ("(?:[^"\\]|\\.)*")', streamed.text)
    assert json.loads(delta) == tape.turns[0].calls[0].arguments
    assert whole["content"][0]["input"] == {}
    assert [c.malformed for turn in tape.turns for c in turn.calls] == [True, True]


@STREAM
@pytest.mark.parametrize(
    ("script", "options", "budget", "end"),
    [
        (["never"], {}, {"max_session_tokens": 50}, SessionEnd.BUDGET),
        (["never"], {"max_context": 50}, {}, SessionEnd.CONTEXT),
        ([ContextError("too long")], {}, {}, SessionEnd.CONTEXT),
        ([EngineError("the engine is dead")], {}, {}, SessionEnd.API_ERROR),
    ],
    ids=["budget", "context", "engine-context", "engine"],
)
async def test_a_session_ends_in_plain_text(tmp_path, stream, script, options, budget, end):
    gateway = make_gateway(tmp_path, {"s1": script}, **options)
    tape = gateway.open(spec(budget=BUDGET.model_copy(update=budget)))
    async with client(gateway, tape) as http:
        first, second = await say(http, stream=stream), await say(http, stream=stream)
    for message in (first, second):
        assert message["stop_reason"] == "end_turn"
        assert "Stopping here." in message["content"][0]["text"]
    assert (tape.end, tape.turns) == (end, [])


async def test_auxiliary_requests_are_answered_and_never_recorded(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": ["real"]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        title = await say(http, tools=())
        real = await say(http)
    assert title["content"][0]["text"]
    assert title["stop_reason"] == "end_turn"
    assert real["content"][0]["text"] == "real"
    assert (tape.auxiliary_calls, tape.model_calls, len(tape.turns)) == (1, 1, 1)


async def test_tokens_are_counted_and_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "MAX_COUNTS", 2)
    gateway = make_gateway(tmp_path, {"s1": ["real"]})
    tape = gateway.open(spec())
    path = "/v1/messages/count_tokens"
    async with client(gateway, tape) as http:
        counted = await post(http, body(), path)
        bare = await post(http, {"model": "m", "messages": [USER]}, path)
        refused = await post(http, body(), path)
        real = await say(http)
    assert counted.json() == {"input_tokens": len(CHAT.render([USER], TOOLS))}
    assert bare.json() == {"input_tokens": len(CHAT.render([USER], []))}
    assert refused.status_code == 429
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert real["usage"]["input_tokens"] == counted.json()["input_tokens"]
    assert (tape.auxiliary_calls, tape.model_calls, len(tape.turns)) == (0, 1, 1)


@STREAM
async def test_what_cant_be_served_is_an_anthropic_error_and_ends_nothing(tmp_path, stream):
    gateway = make_gateway(tmp_path, {"s1": ["fine"]})
    tape = gateway.open(spec())
    image = {"role": "user", "content": [{"type": "image", "source": {}}]}
    deep = json.dumps(body(stream=stream)).replace('"hi"', "[" * 900 + '"hi"' + "]" * 900)
    levels = 800 if sys.version_info < (3, 12) else 3000  # JSON's own reader takes so many
    schema = "[" * levels + "]" * levels
    nested = json.dumps(body(stream=stream)).replace('{"type": "object"}', f'{{"a": {schema}}}')
    async with client(gateway, tape) as http:
        for answer, status, kind, told in [
            (await http.post("/v1/messages", content=b"{"), 400, "invalid_request_error", "JSON"),
            (await post(http, body(image, stream=stream)), 400, "invalid_request_error", "image"),
            (
                await post(http, body({"role": "x" * 9999}, stream=stream)),
                400,
                "invalid_request_error",
                "unknown role",
            ),
            (
                await post(http, body({"role": "user", "content": "refuse me"}, stream=stream)),
                400,
                "invalid_request_error",
                "this template refuses",
            ),
            (
                await http.post("/v1/messages", content=deep),
                400,
                "invalid_request_error",
                "can't be read",
            ),
            (
                await http.post("/v1/messages", content=nested),
                400,
                "invalid_request_error",
                "nested too deeply",
            ),
            (await post(http, {}, "/v1/files"), 404, "not_found_error", "/v1/files"),
            (
                await http.get("/v1/messages", headers=VERSION),
                405,
                "invalid_request_error",
                "GET /v1/messages",
            ),
        ]:
            assert answer.status_code == status, answer.text
            error = answer.json()
            assert error["type"] == "error"
            assert error["error"]["type"] == kind
            assert told in error["error"]["message"]
            assert len(error["error"]["message"]) <= listener.MAX_ERROR_CHARACTERS
        assert (await say(http, stream=stream))["content"][0]["text"] == "fine"
    assert tape.end is None


async def test_large_bodies_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(listener, "MAX_BODY_BYTES", 1000)
    gateway = make_gateway(tmp_path, {"s1": ["fine"]})
    async with client(gateway, gateway.open(spec())) as http:
        for path in ("/v1/messages", "/v1/messages/count_tokens"):
            answer = await post(http, body({"role": "user", "content": "x" * 2000}), path)
            assert answer.status_code == 413
            assert answer.json()["error"]["type"] == "request_too_large"


async def test_a_stream_is_kept_alive_while_the_engine_works(tmp_path):
    engine = ScriptedEngine(CHAT, delay=0.4)
    gateway = make_gateway(tmp_path, {"s1": ["late"]}, engine=engine, keepalive_seconds=0.1)
    async with client(gateway, gateway.open(spec())) as http:
        answer = await post(http, body(stream=True))
    assert answer.headers["content-type"] == "text/event-stream"
    lines = [line for line in answer.text.split("\n") if line]
    waiting = list(itertools.takewhile(lambda line: line == ": keepalive", lines))
    assert len(waiting) >= 2
    assert from_events(answer.text)["content"] == [{"type": "text", "text": "late"}]


async def test_anthropics_own_client_reads_it(tmp_path):
    anthropic = pytest.importorskip("anthropic", reason="Anthropic's Python client is not here")
    reply = "I will.\n" + call("bash", command="ls")
    gateway = make_gateway(tmp_path, {"s1": [reply, reply]})
    tape = gateway.open(spec())
    asked = {"model": "m", "max_tokens": 100, "messages": [USER], "tools": [TOOL]}
    async with client(gateway, tape) as http:
        url = str(http.base_url).rstrip("/")
        async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0) as agent:
            whole = await agent.messages.create(**asked)
            async with agent.messages.stream(**asked) as stream:
                streamed = await stream.get_final_message()
            count = await agent.messages.count_tokens(model="m", messages=[USER], tools=[TOOL])
            with pytest.raises(anthropic.BadRequestError, match="no image"):
                image = {"role": "user", "content": [{"type": "image", "source": {}}]}
                await agent.messages.create(**asked | {"messages": [image]})
            with pytest.raises(anthropic.NotFoundError):
                await agent.models.retrieve("m")
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use"
        said, used = message.content
        assert said.text == "I will."
        assert (used.name, used.input) == ("bash", {"command": "ls"})
        assert message.usage.input_tokens == count.input_tokens
    assert len(tape.turns) == 2
