"""The proxy on a real socket, before a server that answers whatever a test wants."""

import asyncio
import json

import pytest

from harness_adapters.guard.verify import verify_log

from .servers import JSON, SSE, Upstream, proxied
from .support import (
    CALL,
    TOOL_USE,
    USAGE,
    Deny,
    chat_stream,
    chunk,
    completion,
    data,
    entries,
    message,
    part,
    read_chat,
    with_arguments,
)


async def test_an_allowed_stream_is_the_same_bytes_and_headers_go_on(log):
    stream = chat_stream(["Hé ", "you"], [['{"c": ', '"ls"}']], [0, 0, 0])
    async with Upstream(SSE, stream) as upstream, proxied(upstream, log, Deny()) as http:
        answer = await http.post(
            "/v1/chat/completions?beta=1",
            content=b'{"stream":  true}',
            headers={"authorization": "Bearer hunter22", "x-mine": "1", "x-guard-session": "s7"},
        )
    assert answer.content == stream
    assert answer.headers["x-upstream"] == "yes"
    assert answer.headers["content-type"] == "text/event-stream"
    (request,) = upstream.requests
    assert request.target == "/v1/chat/completions?beta=1"
    assert request.body == b'{"stream":  true}'
    assert request.headers["authorization"] == "Bearer hunter22"
    assert request.headers["x-mine"] == "1"
    assert request.headers["host"] == upstream.url.removeprefix("http://")
    assert "x-guard-session" not in request.headers
    assert "hunter22" not in log.read_text()
    (entry,) = entries(log)
    assert (entry["session"], entry["call"], entry["name"]) == ("s7", "id0", "tool0")
    assert verify_log(log).ok


async def test_a_whole_answer_passes_as_it_came_or_without_what_is_blocked(log):
    allowed = json.dumps(completion(CALL), indent=1).encode()
    async with Upstream(JSON, allowed) as upstream, proxied(upstream, log, Deny()) as http:
        assert (await http.post("/v1/chat/completions")).content == allowed
        bad = with_arguments('{"c": "\\u0062ad bad"}') | {"id": "id1"}
        upstream.body = json.dumps(completion(bad, CALL, text="Both.")).encode()
        mixed = (await http.post("/v1/chat/completions")).json()
        upstream.body = json.dumps(completion(bad)).encode()
        alone = (await http.post("/v1/chat/completions")).json()
    (choice,) = mixed["choices"]
    assert choice["message"]["tool_calls"] == [CALL]
    assert choice["finish_reason"] == "tool_calls"
    assert (
        choice["message"]["content"] == "Both.\n[bash was blocked and not run: bad is not allowed]"
    )
    assert mixed["usage"] == {"x": 1}
    (choice,) = alone["choices"]
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "stop"
    assert [e["decision"] for e in entries(log)] == ["allow", "block", "allow", "block"]


async def test_a_whole_message_passes_as_it_came_or_without_what_is_blocked(log):
    thinking = {"type": "thinking", "thinking": "hm", "signature": "x"}
    allowed = json.dumps(message(thinking, TOOL_USE), indent=1).encode()
    bad = TOOL_USE | {"input": {"c": "bad"}}
    async with Upstream(JSON, allowed) as upstream, proxied(upstream, log, Deny()) as http:
        assert (await http.post("/v1/messages?beta=true")).content == allowed
        upstream.body = json.dumps(message(bad, TOOL_USE)).encode()
        mixed = (await http.post("/v1/messages")).json()
        upstream.body = json.dumps(message(bad)).encode()
        alone = (await http.post("/v1/messages")).json()
    notice = {"type": "text", "text": "[bash was blocked and not run: bad is not allowed]"}
    assert mixed["content"] == [notice, TOOL_USE]
    assert mixed["stop_reason"] == "tool_use"
    assert alone["content"] == [notice]
    assert alone["stop_reason"] == "end_turn"
    assert len(entries(log)) == 4


async def test_text_is_live_while_the_call_is_held(log):
    """The client has the text while the upstream still writes the call."""
    go_on = asyncio.Event()
    parts = [
        data(chunk({"content": "now"})),
        data(chunk({"tool_calls": [part(0, "bash", '{"c": "qqq', "id0")]})),
        go_on,
        data(chunk({"tool_calls": [part(0, None, '"}')]})) + data(chunk(finish="tool_calls")),
        data(USAGE) + data("[DONE]"),
    ]
    async with (
        Upstream(SSE, parts) as upstream,
        proxied(upstream, log, Deny()) as http,
        http.stream("POST", "/v1/chat/completions") as answer,
    ):
        portions = answer.aiter_raw()
        assert await anext(portions) == parts[0]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(
                asyncio.shield(rest := asyncio.ensure_future(anext(portions))), 0.3
            )
        go_on.set()
        assert (await rest) + b"".join([p async for p in portions]) == parts[1] + parts[3] + parts[
            4
        ]


async def test_a_held_stream_gets_comments_so_that_no_client_gives_up(log):
    go_on = asyncio.Event()
    start = data(chunk({"tool_calls": [part(0, "bash", "{", "id0")]}))
    end = data(chunk({"tool_calls": [part(0, None, "}")]})) + data(chunk(finish="tool_calls"))
    async with (
        Upstream(SSE, [start, go_on, end]) as upstream,
        proxied(upstream, log, Deny(), keepalive_seconds=0.1) as http,
        http.stream("POST", "/v1/chat/completions") as answer,
    ):
        portions = answer.aiter_raw()
        assert await anext(portions) == b": waiting for a verdict\n\n"
        go_on.set()
        assert b"".join([p async for p in portions]).endswith(start + end)


async def test_log_only_blocks_nothing_and_says_so(log):
    stream = chat_stream([], [['{"c": "bad"}']], [0, 0])
    async with (
        Upstream(SSE, stream) as upstream,
        proxied(upstream, log, Deny(), log_only=True) as http,
    ):
        assert (await http.post("/v1/chat/completions")).content == stream
    (entry,) = entries(log)
    assert (entry["decision"], entry["enforced"]) == ("block", False)


async def test_other_routes_pass_unless_a_call_is_in_them(log):
    models = b'{"object": "list", "data": [{"id": "m", "supports": ["tools", "tool_choice"]}]}'
    async with Upstream(JSON, models) as upstream, proxied(upstream, log, Deny()) as http:
        assert (await http.get("/v1/models")).content == models
        assert (await http.get("/v1/models")).headers["x-upstream"] == "yes"
        upstream.body = b'{"input_tokens": 7}'
        assert (await http.post("/v1/messages/count_tokens")).content == upstream.body
        upstream.kind, upstream.body = "image/png", bytes(range(256)) * 9
        assert (await http.get("/logo.png")).content == upstream.body
        upstream.kind, upstream.body = "text/html", b"<h1>\n{not json\n[\n</h1>"
        assert (await http.get("/")).content == upstream.body
        for kind, body in [
            (JSON, completion(CALL)),
            (JSON, {"output": [{"type": "function_call", "name": "x", "arguments": "qqq"}]}),
            (JSON, {"candidates": [{"content": {"parts": [{"functionCall": {"name": "qqq"}}]}}]}),
            ("application/x-ndjson", {"message": {"tool_calls": [{"function": {"name": "qqq"}}]}}),
        ]:
            upstream.kind, upstream.body = kind, json.dumps(body).encode() + b"\n{}"
            if kind == JSON:
                upstream.body = upstream.body.removesuffix(b"\n{}")
            answer = await http.post("/api/chat")
            assert answer.status_code == 502
            assert "qqq" not in answer.text
        upstream.kind, upstream.body = SSE, data(chunk({"tool_calls": [part(0, "qqq", "", "i")]}))
        assert "qqq" not in (await http.get("/v1/stream")).text
        upstream.body = data({"choices": [{"text": "plain"}]}) + data("[DONE]")
        assert (await http.post("/v1/completions")).content == upstream.body


@pytest.mark.parametrize(
    "path", ["/v1/responses", "/v1//Responses/r1", "/v1/%72esponses", "/v1/threads/t/runs"]
)
async def test_routes_with_calls_of_other_forms_never_reach_the_upstream(log, path):
    async with Upstream(JSON, b"{}") as upstream, proxied(upstream, log, Deny()) as http:
        answer = await http.post(path)
    assert (answer.status_code, upstream.requests) == (501, [])
    assert "can't be judged" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions/",
        "/v1//chat//completions",
        "/V1/Chat/Completions",
        "/x/chat/%63ompletions",
    ],
)
async def test_a_path_spelled_otherwise_is_judged_all_the_same(log, path):
    body = json.dumps(completion(with_arguments('"bad"'))).encode()
    async with Upstream(JSON, body) as upstream, proxied(upstream, log, Deny()) as http:
        answer = await http.post(path)
    assert "tool_calls" not in answer.json()["choices"][0]["message"]


async def test_errors_of_the_upstream_go_back_as_they_are(log):
    body = b'{"error": {"message": "no such key"}}'
    async with Upstream(JSON, body, status=401) as upstream, proxied(upstream, log, Deny()) as http:
        answer = await http.post("/v1/chat/completions")
        assert (answer.status_code, answer.content) == (401, body)
        upstream.kind, upstream.body, upstream.status = "text/html", b"<h1>Bad gateway</h1>", 502
        answer = await http.post("/v1/messages")
        assert (answer.status_code, answer.content) == (502, upstream.body)


async def test_a_client_that_leaves_ends_the_request_upstream(log):
    start = data(chunk({"tool_calls": [part(0, "bash", '{"c"', "id0")]}))
    async with (
        Upstream(SSE, [data(chunk({"content": "a"})) + start, asyncio.Event()]) as upstream,
        proxied(upstream, log, Deny()) as http,
        http.stream("POST", "/v1/chat/completions") as answer,
    ):
        await anext(answer.aiter_raw())
        await asyncio.wait_for(upstream.left.wait(), 5)
    (entry,) = entries(log)
    assert (entry["rule"], entry["arguments"]) == ("guard-incomplete", '{"c"')


async def test_many_streams_at_once_log_every_call_once(log):
    stream = chat_stream(["a"], [['{"c": "ls"}'], ['{"c": "bad"}']], [0, 1, 0, 1])
    async with Upstream(SSE, stream) as upstream, proxied(upstream, log, Deny()) as http:
        answers = await asyncio.gather(*(http.post("/v1/chat/completions") for _ in range(40)))
    for answer in answers:
        _, calls, ends = read_chat(answer.content)
        assert (calls, ends) == ({0: ("tool0", '{"c": "ls"}')}, ["tool_calls"])
    assert len({(e["turn"], e["call"]) for e in entries(log)}) == len(entries(log)) == 80
    assert verify_log(log).entries == 80
