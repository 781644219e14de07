"""Whatever breaks, no call passes: policy, stream, upstream, log, and the proxy itself."""

import asyncio
import json
import os
import threading
import time

import pytest

from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policies import AllowAll
from harness_adapters.proxy import app
from harness_adapters.proxy import chat_stream as chat_stream_module
from harness_adapters.proxy.relay import Limits
from harness_adapters.records import Verdict

from .servers import JSON, SSE, Upstream, proxied
from .support import (
    CALL,
    TEXT,
    TOOL_USE,
    Deny,
    chat_stream,
    chunk,
    completion,
    data,
    entries,
    message,
    messages_stream,
    named,
    part,
    read_chat,
    read_messages,
    with_arguments,
)

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}
WRITE = {"chat": chat_stream, "messages": messages_stream}


async def ask(log, policy, body, path, *, headers=None, server=None, **options):
    """One request through a proxy of its own; `body` of bytes that start an event is a stream."""
    kind = SSE if isinstance(body, list) or body[:5] in (b"data:", b"event") else JSON
    server = Upstream(kind, body, **(server or {}))
    async with server as upstream, proxied(upstream, log, policy, **options) as http:
        return await http.post(path, headers=headers)


class Raises:
    def judge(self, call):
        raise KeyError(call.name)


class Hangs:
    def judge(self, call):
        threading.Event().wait(60)


class Wrong:
    def judge(self, call):
        return True


class AlmostRight:
    def judge(self, call):
        return Verdict("block", "a string that only looks like a decision")


@pytest.mark.parametrize(
    ("policy", "rule"),
    [
        (Raises(), "guard-error"),
        (Hangs(), "guard-timeout"),
        (Wrong(), "guard-error"),
        (AlmostRight(), "guard-error"),
    ],
)
@pytest.mark.parametrize("wire", PATHS)
async def test_a_policy_that_fails_blocks(log, policy, rule, wire):
    stream = WRITE[wire](["hello"], [['{"c": "qqq"}']], [0, 0])
    began = time.monotonic()
    answer = await ask(log, policy, stream, PATHS[wire], seconds=0.2)
    assert time.monotonic() - began < 10
    assert b"was blocked and not run" in answer.content
    assert not any(word in answer.content for word in (b"qqq", b"tool_calls", b"tool_use"))
    (entry,) = entries(log)
    assert (entry["decision"], entry["rule"]) == ("block", rule)


NAMES = [
    chunk({"tool_calls": [part(0, "qqq", "{}", "a")]}),
    chunk({"tool_calls": [part(0, "other", "", None)]}),
]
DELTA = {"type": "input_json_delta", "partial_json": "{}"}
START = named("content_block_start", index=0, content_block=TOOL_USE)
UNREADABLE_CHAT = {
    "not JSON": b'data: {"choices": [qqq\n\n',
    "twin keys": b'data: {"choices": [{"delta": {"tool_calls": [], "tool_calls": ["qqq"]}}]}\n\n',
    "a call of the old kind": data(chunk({"function_call": {"name": "qqq", "arguments": ""}})),
    "a custom call": data(
        chunk({"tool_calls": [{"index": 0, "type": "custom", "custom": {"name": "qqq"}}]})
    ),
    "another spelling": data(chunk({"Tool_Calls": [part(0, "qqq", "{}")]})),
    "a call beside the delta": data(chunk() | {"tool_calls": [part(0, "qqq", "{}")]}),
    "a message beside the delta": data(
        {"choices": [{"index": 0, "message": {"tool_calls": [CALL]}}]}
    ),
    "a call in the content": data(chunk({"content": [{"type": "tool_use", "name": "qqq"}]})),
    "no index": data(chunk({"tool_calls": [{"function": {"name": "qqq", "arguments": ""}}]})),
    "arguments that are an object": data(chunk({"tool_calls": [part(0, "x", {"qqq": 1}, "i")]})),
    "a changed name": b"".join(map(data, NAMES)),
    "one key in two spellings": data(
        chunk({"tool_calls": [part(0, "x", "", "i") | {"Function": {"name": "qqq"}}]})
    ),
    "another form of the event": data(
        {"type": "response.function_call_arguments.delta", "delta": "qqq"}
    ),
    "a field that is none": b"data: {}\ndate: qqq\n\n",
    "not UTF-8": b'data: {"qqq\xff": 1}\n\n',
    "after the end": data(chunk(finish="stop"))
    + data(chunk({"tool_calls": [part(0, "qqq", "{}", "i")]})),
    "not an object": data('["qqq"]'),
    "choices of another kind": data(
        {"choices": {"0": chunk({"tool_calls": [part(0, "qqq", "")]})}}
    ),
}
UNREADABLE_MESSAGES = {
    "not JSON": b"event: content_block_start\ndata: {qqq\n\n",
    "two types": b"event: ping\n" + START.split(b"\n", 1)[1],
    "a call at the maker's": named(
        "content_block_start", index=0, content_block=TOOL_USE | {"type": "server_tool_use"}
    ),
    "an unknown event": named("block", content_block=TOOL_USE),
    "a call in the start": named("message_start", message={"content": [TOOL_USE]}),
    "a delta without a start": named(
        "content_block_delta", index=0, delta=DELTA | {"partial_json": "qqq"}
    ),
    "a delta of another kind": named(
        "content_block_start", index=0, content_block={"type": "text", "text": ""}
    )
    + named("content_block_delta", index=0, delta=DELTA | {"partial_json": "qqq"}),
    "input twice": START + named("content_block_delta", index=0, delta=DELTA),
    "one index twice": START + START,
    "an end within a call": START + named("message_delta", delta={"stop_reason": "tool_use"}),
    "twin keys": b'event: x\ndata: {"type": "x", "type": "x", "q": "qqq"}\n\n',
}
PASSES_FIRST = {"after the end", "a field that is none", "a delta of another kind"}
"""Cases with a harmless event before the other."""
CASES = [("chat", case, events) for case, events in UNREADABLE_CHAT.items()]
CASES += [("messages", case, events) for case, events in UNREADABLE_MESSAGES.items()]
FIRST = {
    "chat": data(chunk({"content": "hello"})),
    "messages": named("content_block_start", index=5, content_block=TEXT | {"text": "hello"}),
}


@pytest.mark.parametrize(
    ("wire", "case", "events"), CASES, ids=[f"{wire}-{case}" for wire, case, _ in CASES]
)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "after text"])
async def test_a_stream_that_cant_be_judged_ends_in_an_error(log, wire, case, events, late):
    """Nothing of the event passes: a 502 where nothing was sent yet, else an error in it."""
    first = FIRST[wire] if late else b""
    stream = first + events + data("[DONE]")
    headers = {"anthropic-version": "2023-06-01"} if wire == "messages" else {}
    answer = await ask(log, AllowAll(), stream, PATHS[wire], headers=headers)
    assert answer.content.startswith(first)
    assert b"qqq" not in answer.content
    assert b"audit proxy" in answer.content
    if late and wire == "messages":
        assert b'event: error\ndata: {"type":"error"' in answer.content
    elif late:
        assert b'data: {"error":' in answer.content
    elif case not in PASSES_FIRST:
        assert answer.status_code == 502
        assert answer.json()["error"]["message"].startswith("audit proxy: ")
    (entry,) = entries(log)
    assert entry["decision"] == "block", "what was refused is on record"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize(
    "body",
    [
        b"qqq",
        b'{"choices": [], "choices": [{"qqq": 1}], "content": [], "content": ["qqq"]}',
        json.dumps({"output": [{"type": "function_call", "name": "qqq"}]}).encode(),
        json.dumps({"Choices": [{"message": {"tool_calls": [CALL]}}]}).encode(),
        json.dumps({"content": "qqq", "choices": "qqq"}).encode(),
        json.dumps({"content": [TOOL_USE | {"type": "mcp_tool_use"}], "choices": [7]}).encode(),
        json.dumps({"choices": [{"message": {"function_call": {"name": "qqq"}}}]}).encode(),
    ],
)
async def test_a_whole_answer_that_cant_be_judged_is_a_502(log, path, body):
    async with Upstream(JSON, body) as upstream, proxied(upstream, log, AllowAll()) as http:
        answer = await http.post(path)
    assert answer.status_code == 502
    assert b"qqq" not in answer.content


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("form", ["stream", "stream, at once", "whole"])
async def test_an_oversize_call_is_replaced_by_a_notice(log, wire, form):
    large = json.dumps({"c": "qqq" * 5000})
    pieces = [large] if form.endswith("once") else [large[:3000], large[3000:]]
    body = WRITE[wire](["hello"], [pieces], [0] * (len(pieces) + 1))
    if form == "whole":
        chat = completion(with_arguments(large))
        body = chat if wire == "chat" else message(TOOL_USE | {"input": json.loads(large)})
        body = json.dumps(body).encode()
    answer = await ask(log, AllowAll(), body, PATHS[wire], limits=Limits(max_call=4000))
    assert answer.status_code == 200
    assert b"qqq" not in answer.content
    assert b"was blocked and not run" in answer.content
    (entry,) = entries(log)
    assert (entry["decision"], entry["rule"]) == ("block", "guard-oversize")
    if form == "whole":
        assert not any(word in answer.content for word in (b"tool_calls", b'"tool_use"'))
    elif wire == "chat":
        text, calls, ends = read_chat(answer.content)
        assert ("hello" in text, calls, ends) == (True, {}, ["stop"])
        assert answer.content.endswith(b"data: [DONE]\n\n")
    else:
        text, calls, ends = read_messages(answer.content)
        assert ("hello" in text, calls, ends) == (True, {}, ["end_turn"])
        assert b"event: message_stop" in answer.content


@pytest.mark.parametrize("max_held", [2000, 300])
@pytest.mark.parametrize("wire", PATHS)
async def test_more_than_may_be_held_is_let_go_of(log, wire, max_held):
    stream = WRITE[wire]([], [["q"] * 200], [0] * 201)
    limits = Limits(max_held=max_held)
    answer = await ask(log, AllowAll(), stream, PATHS[wire], limits=limits)
    assert b"tool" not in answer.content.replace(b"[tool0 was blocked", b"")
    assert [entry["rule"] for entry in entries(log)] == ["guard-oversize"]


async def test_an_event_without_an_end_is_let_go_of(log):
    stream = [b'data: {"choices": [{"delta": {"content": "qqq', b"q" * 5000, asyncio.Event()]
    limits = Limits(max_held=4000)
    answer = await ask(log, AllowAll(), stream, PATHS["chat"], limits=limits)
    assert (answer.status_code, b"qqq" in answer.content) == (502, False)


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("orderly", [True, False], ids=["closed", "broken off"])
async def test_an_upstream_that_dies_within_a_call(log, wire, orderly):
    stream = WRITE[wire](["hello"], [['{"c": "qqq', '"}']], [0, 0, 0])
    cut = stream[: stream.index(b"qqq") + 3]
    server = {"orderly": orderly}
    whole_event = {"chat": b'"}}]}}]}\n\n', "messages": b'"}}\n\n'}[wire]
    for body in (cut, cut + whole_event):
        answer = await ask(log, AllowAll(), [body], PATHS[wire], server=server)
        assert answer.status_code == 200
        assert b"hello" in answer.content
        assert not any(word in answer.content for word in (b"qqq", b"tool0", b"id0"))
        assert b"error" in answer.content
    assert [entry["decision"] for entry in entries(log)] == ["block", "block"]


async def test_an_upstream_that_isnt_there_is_a_502_and_a_slow_one_a_504(log):
    async with (
        Upstream(JSON, [asyncio.Event()]) as upstream,
        proxied(upstream, log, AllowAll(), read_seconds=0.2) as http,
    ):
        assert (await http.post("/v1/chat/completions")).status_code == 504
    async with proxied(upstream, log, AllowAll()) as http:
        assert (await http.post("/v1/chat/completions")).status_code == 502
    assert entries(log) == []


@pytest.mark.parametrize("header", ["location: http://elsewhere/", "content-encoding: gzip"])
async def test_a_way_past_the_guard_is_a_502(log, header):
    server = {"status": 307 if "location" in header else 200, "header": header}
    answer = await ask(log, AllowAll(), b"qqq", PATHS["chat"], server=server)
    assert (answer.status_code, b"qqq" in answer.content) == (502, False)


@pytest.mark.parametrize("log_only", [False, True])
@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("form", ["stream", "whole"])
async def test_a_log_that_cant_be_written_lets_no_call_through(log, wire, form, log_only):
    """A full disk: /dev/full in the place of the log's file."""
    audit = AuditLog(log)
    os.dup2(os.open("/dev/full", os.O_WRONLY), audit._fd)
    whole = {"chat": completion(CALL), "messages": message(TOOL_USE)}[wire]
    body = json.dumps(whole).encode()
    if form == "stream":
        body = WRITE[wire]([], [['{"c": "qqq"}']], [0, 0])
    answer = await ask(audit, AllowAll(), body, PATHS[wire], log_only=log_only)
    assert not any(word in answer.content for word in (b"qqq", b"tool0", b"id0"))
    assert b"No space left" in answer.content
    assert answer.status_code == 500 or b'"error"' in answer.content
    body = WRITE[wire](["text needs no log"], [], [])
    assert (await ask(audit, AllowAll(), body, PATHS[wire])).content == body


async def test_a_fault_of_our_own_lets_nothing_through(log, monkeypatch):
    monkeypatch.setattr(chat_stream_module, "_kept_delta", None)
    stream = chat_stream(["hello"], [['{"c": "bad"}']], [0, 0])
    answer = await ask(log, Deny(), stream, PATHS["chat"])
    assert b'data: {"error":' in answer.content
    assert b"bad" not in answer.content


async def test_a_request_that_is_too_large_is_a_413(log, monkeypatch):
    monkeypatch.setattr(app, "MAX_REQUEST_BYTES", 1000)
    async with Upstream(JSON, b"{}") as upstream, proxied(upstream, log, AllowAll()) as http:
        answer = await http.post(
            "/v1/messages", content=b"x" * 2000, headers={"anthropic-version": "x"}
        )
    assert (answer.status_code, answer.json()["type"]) == (413, "error")
    assert upstream.requests == []
