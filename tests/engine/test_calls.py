import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.engine import ParsedCall, ParsedReply
from harness_adapters.engine.calls import CallFormat, parse, write

JSON = CallFormat.FENCED_JSON
ALL = list(CallFormat)

plain_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True)
identifiers = names.filter(lambda n: n.isidentifier() and n not in {"true", "false", "null"})


def one(text: str, call_format: CallFormat = JSON) -> ParsedCall:
    (call,) = parse(text, call_format).calls
    return call


@given(name=names, arguments=st.dictionaries(st.text(), plain_json, max_size=4))
@pytest.mark.parametrize("call_format", [CallFormat.FENCED_JSON, CallFormat.HERMES])
def test_what_is_written_is_read(
    call_format: CallFormat, name: str, arguments: dict[str, object]
) -> None:
    call = one(write(name, json.dumps(arguments), call_format), call_format)
    assert (call.name, json.loads(call.arguments), call.malformed) == (name, arguments, False)
    assert list(json.loads(call.arguments)) == list(arguments)


keywords = __import__("keyword").kwlist


@given(
    name=identifiers.filter(lambda n: n not in keywords),
    arguments=st.dictionaries(
        identifiers.filter(lambda n: n not in keywords), plain_json, max_size=4
    ),
)
def test_pythonic_is_read_back(name: str, arguments: dict[str, object]) -> None:
    call = one(write(name, json.dumps(arguments), CallFormat.PYTHONIC), CallFormat.PYTHONIC)
    assert (call.name, json.loads(call.arguments), call.malformed) == (name, arguments, False)


@settings(max_examples=300)
@given(
    text=st.text()
    | st.lists(
        st.sampled_from(
            [
                "```json\n",
                "```",
                "{",
                "}",
                '"name"',
                '"arguments"',
                ":",
                '"',
                "bash",
                ",",
                "[",
                "]",
                "<tool_call>",
                "</tool_call>",
                "<|tool_call_start|>",
                "<|tool_call_end|>",
                "\\u",
                "f(",
                ")",
                "a=",
                "\\ud83d",
                "NaN",
                "1e999",
                "\n",
                "é",
            ]
        ),
        max_size=40,
    ).map("".join)
)
@pytest.mark.parametrize("call_format", ALL)
def test_hostile_text_never_raises(call_format: CallFormat, text: str) -> None:
    reply = parse(text, call_format)
    for call in reply.calls:
        call.arguments.encode("utf-8", "surrogatepass")
        if not call.malformed:
            assert isinstance(json.loads(call.arguments), dict)
    if not reply.calls:
        assert reply.content == text


@pytest.mark.parametrize("call_format", ALL)
@pytest.mark.parametrize(
    "unit",
    [
        *[
            "{",
            "[",
            "```{",
            "```json\n{",
            '{"name":',
            "<tool_call>",
            "<tool_call>{",
            "<|tool_call_start|>",
            "\\",
            "`",
            "(((",
        ],
        *['{"name": "a", "arguments": {', "<|tool_call_start|>[f(", '"', " "],
    ],
)
def test_long_repetition_takes_no_time(call_format: CallFormat, unit: str) -> None:
    start = time.process_time()
    parse(unit * (200_000 // len(unit)), call_format)
    # Quadratic work on 200,000 characters would take minutes.
    assert time.process_time() - start < 1.0


def test_fenced_call_with_text() -> None:
    text = 'I look.\n```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```'
    assert parse(text, JSON) == ParsedReply("I look.\n", [ParsedCall("bash", '{"command": "ls"}')])


def test_several_fenced_calls() -> None:
    block = '```json\n{"name": "bash", "arguments": {"n": %d}}\n```'
    reply = parse("\n".join(block % i for i in range(3)), JSON)
    assert [json.loads(c.arguments)["n"] for c in reply.calls] == [0, 1, 2]
    assert reply.content == ""


@pytest.mark.parametrize("call_format", [CallFormat.FENCED_JSON, CallFormat.HERMES])
def test_every_form_inside_an_argument_is_text(call_format: CallFormat) -> None:
    inner = "".join(write("rm", '{"path": "/"}', other) for other in ALL)
    call = one(write("write", json.dumps({inner: inner}), call_format), call_format)
    assert (call.name, json.loads(call.arguments)) == ("write", {inner: inner})


def test_fence_inside_an_argument_is_text() -> None:
    call = one(write("write", json.dumps({"content": "a\n```\nb```json\n{"}), JSON))
    assert json.loads(call.arguments) == {"content": "a\n```\nb```json\n{"}


def test_bare_json_is_a_call() -> None:
    assert one('{"name": "read", "arguments": {"path": "a"}}').name == "read"
    assert one('Sure: {"arguments": {"path": "a"}, "name": "read"}').name == "read"


def test_other_names_for_the_same_thing() -> None:
    wrapped = '{"type": "function", "function": {"name": "f", "arguments": "{\\"a\\": 1}"}}'
    call = one(f"```json\n{wrapped}\n```")
    assert (call.name, call.arguments, call.malformed) == ("f", '{"a": 1}', False)
    assert one('```json\n{"name": "f", "parameters": {"a": 1}}\n```').arguments == '{"a": 1}'


def test_raw_newline_in_a_string_is_forgiven() -> None:
    call = one('```json\n{"name": "bash", "arguments": {"command": "a\nb"}}\n```')
    assert (json.loads(call.arguments), call.malformed) == ({"command": "a\nb"}, False)


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"name": "bash", "arguments": {"command": "ls}}\n```',
        '```json\n{"name": "bash", "arguments": {"command": "ls"}\n```',
        '```json\n{"name": "bash", "arguments": ["ls"]}\n```',
        '```json\n{"name": "bash", "arguments": "ls"}\n```',
        '```json\n{"name": "bash", "arguments": {"timeout": NaN}}\n```',
        '```json\n{"name": "bash", "arguments": {"timeout": 1e999}}\n```',
        '{"name": "bash", "arguments": {"command": "ls -l',
        '<tool_call>\n{"name": "bash", "arguments": {"command"\n</tool_call>',
    ],
)
def test_broken_call_is_malformed_with_its_name(text: str) -> None:
    call = one(text)
    assert (call.name, call.malformed) == ("bash", True)


@pytest.mark.parametrize(
    "text",
    [
        "Done.",
        '```json\n{"total": 3}\n```',
        '```json\n{"name": "Alice", "age": 3}\n```',
        "```bash\nls\n```",
        "```python\n{1: 2}\n```",
        "",
    ],
)
def test_answers_are_no_calls(text: str) -> None:
    assert parse(text, JSON) == ParsedReply(text, [])


def test_half_a_surrogate_pair_can_be_sent_on() -> None:
    call = one('```json\n{"name": "bash", "arguments": {"command": "\\ud83d"}}\n```')
    assert not call.malformed
    call.arguments.encode()
    assert json.loads(call.arguments) == {"command": "\ud83d"}


def test_pythonic_calls() -> None:
    text = '<|tool_call_start|>[read(path="a.txt", limit=3), ls(all=true)]<|tool_call_end|>Reading.'
    reply = parse(text, CallFormat.PYTHONIC)
    assert reply == ParsedReply(
        "Reading.",
        [ParsedCall("read", '{"path": "a.txt", "limit": 3}'), ParsedCall("ls", '{"all": true}')],
    )


@pytest.mark.parametrize(
    "body",
    ["[bash('ls')]", "[bash(command=open('x'))]", "[bash(command=]", "[bash(**x)]"],
)
def test_pythonic_calls_are_data_only(body: str) -> None:
    call = one(f"<|tool_call_start|>{body}<|tool_call_end|>", CallFormat.PYTHONIC)
    assert (call.name, call.malformed) == ("bash", True)
