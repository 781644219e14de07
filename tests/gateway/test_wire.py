import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.gateway import wire
from harness_adapters.records import Decision, ToolCall, Verdict

ALLOWED = Verdict(Decision.ALLOW, "allow-all")


def normalise(message):
    return wire.normalise_messages([message])[0]


def test_text_parts_become_one_string_and_images_a_placeholder():
    content = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "text", "text": "here"},
    ]
    clean = normalise({"role": "user", "content": content, "cache_control": {"type": "x"}})
    assert clean == {"role": "user", "content": "look\n[image not shown]\nhere"}


def test_developer_is_system_and_calls_keep_their_text():
    assert normalise({"role": "developer", "content": "s"}) == {"role": "system", "content": "s"}
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{broken"}}
    clean = normalise({"role": "assistant", "content": None, "tool_calls": [call | {"index": 0}]})
    assert clean == {"role": "assistant", "content": None, "tool_calls": [call]}


def test_argument_objects_become_json_text():
    call = {"id": "c", "function": {"name": "bash", "arguments": {"command": "ä"}}}
    clean = normalise({"role": "assistant", "content": "", "tool_calls": [call]})
    assert clean["tool_calls"][0]["function"]["arguments"] == '{"command": "ä"}'


def test_lone_surrogates_can_be_encoded_afterwards():
    body = b'{"messages": [{"role": "user", "content": "a\\ud800b\\ud83d\\ude00"}]}'
    request = wire.read_request(body)
    assert wire.normalise_messages(request.messages)[0]["content"] == "a\ufffdb\U0001f600"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_string_becomes_encodable_and_good_ones_stay(text):
    clean = normalise({"role": "user", "content": text})["content"]
    clean.encode()
    if not any(0xD800 <= ord(c) < 0xE000 for c in text):
        assert clean == text


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [{"role": "user"}], "max_tokens": 0}', "max_tokens"),
    ],
)
def test_bad_bodies_are_refused_by_name(body, told):
    with pytest.raises(wire.BadRequest, match=told):
        wire.read_request(body)


@pytest.mark.parametrize(
    "message",
    [
        {"content": "no role"},
        {"role": "robot", "content": "x"},
        {"role": "user", "content": 3},
        {"role": "assistant", "content": "", "tool_calls": "x"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {}}]},
    ],
)
def test_bad_messages_are_refused(message):
    with pytest.raises(wire.BadRequest, match=r"messages\.0"):
        wire.normalise_messages([message])


def test_new_messages_are_those_after_the_common_start():
    a, b, c, d = ({"role": "user", "content": x} for x in "abcd")
    assert wire.new_messages([], [a, b]) == [a, b]
    assert wire.new_messages([a, b], [a, b, c]) == [c]
    assert wire.new_messages([a, b, c], [a, d]) == [d]
    assert wire.new_messages([a, b], [a, b]) == []


def test_the_stream_is_message_finish_usage_done():
    call = ToolCall("call_0_0", "bash", '{"command": "ls"}', ALLOWED)
    answer = wire.Answer("text", [call], "length", 7, 3, 2)
    lines = b"".join(wire.write_events(answer, "m", 1)).split(b"\n\n")
    assert lines[-2:] == [b"data: [DONE]", b""]
    message, finish, usage = (json.loads(line.removeprefix(b"data: ")) for line in lines[:3])
    delta = message["choices"][0]["delta"]
    assert delta["content"] == "text"
    assert delta["tool_calls"] == [
        {
            "index": 0,
            "id": "call_0_0",
            "type": "function",
            "function": {"name": "bash", "arguments": '{"command": "ls"}'},
        }
    ]
    assert message["choices"][0]["finish_reason"] is None
    assert finish["choices"][0] == {"index": 0, "delta": {}, "finish_reason": "tool_calls"}
    assert usage["choices"] == []
    assert usage["usage"]["total_tokens"] == 10
    assert usage["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
