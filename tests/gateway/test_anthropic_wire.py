import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.gateway import anthropic_wire, wire
from harness_adapters.records import Decision, ToolCall, Verdict

ALLOWED = Verdict(Decision.ALLOW, "allow-all")
CALL = ToolCall("call_0_0", "bash", '{"command": "ls"}', ALLOWED)


def read(*messages, **more):
    body = {"model": "m", "max_tokens": 9, "messages": list(messages)} | more
    return anthropic_wire.read_request(json.dumps(body).encode())


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks):
    return {"role": "assistant", "content": list(blocks)}


def text(words, **more):
    return {"type": "text", "text": words} | more


def result(call_id, content, **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


def test_a_conversation_becomes_the_projects_own_messages():
    request = read(
        user(text("do it"), text("now", cache_control={"type": "ephemeral"})),
        assistant(
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            text("I will."),
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "echo ä"}},
            {"type": "tool_use", "id": "c2", "name": "bash", "input": {}},
        ),
        user(
            result("c1", "ä"),
            result("c2", [text("one"), text("two")], is_error=True),
            text("go on"),
        ),
        assistant({"type": "redacted_thinking", "data": "x"}),
        system=[text("You are"), text("an agent.", cache_control={"type": "ephemeral"})],
    )
    assert request.messages == [
        {"role": "system", "content": "You are\nan agent."},
        {"role": "user", "content": "do it\nnow"},
        {
            "role": "assistant",
            "content": "I will.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "bash", "arguments": '{"command": "echo ä"}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ä"},
        {"role": "tool", "tool_call_id": "c2", "content": "one\ntwo"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": ""},
    ]
    assert wire.normalise_messages(request.messages) == request.messages
    assert (request.model, request.limit, request.tools) == ("m", 9, None)


def test_strings_stay_and_an_empty_system_prompt_is_none():
    request = read({"role": "user", "content": "hi"}, system="")
    assert request.messages == [{"role": "user", "content": "hi"}]
    later = read({"role": "user", "content": "hi"}, {"role": "system", "content": "be brief"})
    assert later.messages[-1] == {"role": "system", "content": "be brief"}


def test_a_message_without_blocks_is_empty():
    assert read(user(), assistant()).messages == [
        {"role": "user", "content": ""},
        {"role": "assistant", "content": ""},
    ]


def test_a_result_without_content_is_empty():
    block = {"type": "tool_result", "tool_use_id": "c"}
    assert read(user(block)).messages == [{"role": "tool", "tool_call_id": "c", "content": ""}]


def test_tools_become_function_tools():
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    tool = {"name": "bash", "description": "Run it.", "input_schema": schema}
    plain = {"name": "noop", "type": "custom", "input_schema": {"type": "object"}}
    request = read(user(text("x")), tools=[tool | {"cache_control": {"type": "x"}}, plain])
    assert request.tools == [
        {
            "type": "function",
            "function": {"name": "bash", "description": "Run it.", "parameters": schema},
        },
        {"type": "function", "function": {"name": "noop", "parameters": {"type": "object"}}},
    ]
    assert wire.normalise_tools(request.tools) == request.tools


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": 0}', "max_tokens"),
        (b'{"messages": [{"role": "user", "content": "x"}], "system": 3}', "system"),
        (b'{"messages": [{"role": "user", "content": "x"}], "system": [3]}', "system"),
        (b'{"messages": [{"role": "user", "content": "x"}], "tools": [{"name": "x"}]}', "tools.0"),
    ],
)
def test_bad_bodies_are_refused_by_name(body, told):
    with pytest.raises(wire.BadRequest, match=told) as caught:
        anthropic_wire.read_request(body)
    assert caught.value.status == 400


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ({"content": "no role"}, "unknown role"),
        ({"role": "tool", "content": "x"}, "unknown role 'tool'"),
        ({"role": "user"}, "neither a string nor a list"),
        (user(3), "type None can't be read"),
        (user({"type": "text"}), "type 'text' can't be read"),
        (user(IMAGE), r"content\.0: this model reads text only, no image"),
        (user(text("x"), {"type": "document"}), r"content\.1: .* no document"),
        (user(result("c", [text("x"), IMAGE])), "no image"),
        (user({"type": "tool_result", "content": "x"}), "without a tool_use_id"),
        (user({"type": "tool_use", "id": "c", "name": "x"}), "can't be read"),
        (assistant({"type": "tool_use", "id": "c"}), "without a name"),
        (assistant({"type": "tool_use", "name": "x"}), "without a name or an id"),
        (assistant(result("c", "x")), "can't be read"),
        ({"role": "system", "content": [result("c", "x")]}, "can't be read"),
    ],
)
def test_bad_messages_are_refused_by_place(message, told):
    with pytest.raises(wire.BadRequest, match=told) as caught:
        read({"role": "user", "content": "before"}, message)
    assert str(caught.value).startswith("messages.1")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3), JSON, JSON)
def test_any_json_is_read_or_refused(messages, system, tools):
    body = {"messages": messages, "system": system, "tools": tools}
    try:
        request = anthropic_wire.read_request(json.dumps(body).encode())
        wire.normalise_messages(request.messages)
    except wire.BadRequest:
        pass


ODD = st.sampled_from([None, 3, "x", "\ud800", [], ["x"], {}, {"type": "text", "text": 3}])
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "thinking", "image"])},
    optional=dict.fromkeys(["text", "id", "name", "input", "tool_use_id", "content"], ODD),
)


@given(st.sampled_from(["user", "assistant", "system"]), st.lists(BLOCK, max_size=4))
def test_any_blocks_are_read_or_refused(role, blocks):
    try:
        request = read({"role": role, "content": blocks})
        wire.normalise_messages(request.messages)
    except wire.BadRequest:
        pass


def events_of(answer):
    """Pairs of the event's name and its data."""
    parts = b"".join(anthropic_wire.write_events(answer, "m", 1)).decode().split("\n\n")
    assert parts.pop() == ""
    lines = [part.split("\n") for part in parts]
    assert all(len(pair) == 2 for pair in lines)
    return [(a.removeprefix("event: "), json.loads(b.removeprefix("data: "))) for a, b in lines]


def test_the_stream_is_start_blocks_delta_stop():
    other = ToolCall("call_0_1", "write", '{"path": "a"', ALLOWED, malformed=True)
    events = events_of(wire.Answer("text", [CALL, other], "stop", 7, 3, 2))
    assert [kind for kind, _ in events] == [
        "message_start",
        *["content_block_start", "content_block_delta", "content_block_stop"] * 3,
        "message_delta",
        "message_stop",
    ]
    assert all(data["type"] == kind for kind, data in events)
    start = events[0][1]["message"]
    assert start.pop("id").startswith("msg_")
    assert start == {
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 2,
            "output_tokens": 0,
        },
    }
    blocks = [data for kind, data in events if kind.startswith("content_block")]
    assert [data["index"] for data in blocks] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert blocks[0]["content_block"] == {"type": "text", "text": ""}
    assert blocks[1]["delta"] == {"type": "text_delta", "text": "text"}
    assert blocks[3]["content_block"] == {
        "type": "tool_use",
        "id": "call_0_0",
        "name": "bash",
        "input": {},
    }
    assert blocks[4]["delta"] == {
        "type": "input_json_delta",
        "partial_json": '{"command": "ls"}',
    }
    assert blocks[7]["delta"]["partial_json"] == '{"path": "a"', "as the model wrote it"
    assert events[-2][1]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}
    assert events[-2][1]["usage"]["output_tokens"] == 3


def test_an_empty_answer_has_no_blocks():
    kinds = [kind for kind, _ in events_of(wire.Answer(""))]
    assert kinds == ["message_start", "message_delta", "message_stop"]


def test_messages_have_ids_of_their_own():
    ids = [events_of(wire.Answer("x"))[0][1]["message"]["id"] for _ in range(2)]
    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    ("calls", "finish", "reason"),
    [
        ([], "stop", "end_turn"),
        ([], "length", "max_tokens"),
        ([CALL], "stop", "tool_use"),
        ([CALL], "length", "tool_use"),
    ],
)
def test_stop_reasons(calls, finish, reason):
    answer = wire.Answer("x", calls, finish)
    assert json.loads(anthropic_wire.write_completion(answer, "m", 1))["stop_reason"] == reason
    assert events_of(answer)[-2][1]["delta"]["stop_reason"] == reason


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"command": "ls"}', {"command": "ls"}),
        ('{"command": "ls', {}),
        ("[1]", {}),
        ("", {}),
        ('{"a": NaN}', {}),
        ('{"a": ' * 5000, {}),
    ],
)
def test_input_is_an_object_whatever_the_model_wrote(arguments, expected):
    answer = wire.Answer("", [ToolCall("c", "bash", arguments, ALLOWED)], "stop", 7, 3, 2)
    body = anthropic_wire.write_completion(answer, "m", 1)
    message = json.loads(body, parse_constant=pytest.fail)
    assert message["content"] == [
        {"type": "tool_use", "id": "c", "name": "bash", "input": expected}
    ]
    assert message["usage"]["input_tokens"] + message["usage"]["cache_read_input_tokens"] == 7


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (404, "not_found_error"),
        (405, "invalid_request_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_errors_have_anthropics_form(status, kind):
    assert json.loads(anthropic_wire.write_error("no", status)) == {
        "type": "error",
        "error": {"type": kind, "message": "no"},
    }
