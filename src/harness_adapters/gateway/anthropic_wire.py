"""The Anthropic Messages wire: requests read into the project's own form, answers written.

Format: Anthropic API reference, `POST /v1/messages` and `POST /v1/messages/count_tokens`, version
`2023-06-01` (the `anthropic-version` header), with `stream` as server-sent events. Nothing past
this module knows of it: what is captured, judged and counted is the same as on the OpenAI wire.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, NoReturn

from pydantic import BaseModel, Field

from harness_adapters.gateway.wire import Answer, BadRequest, ChatRequest, load, validate
from harness_adapters.records import Message, ToolCall, ToolSchema

ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""`error.type` by HTTP status; any other is an `invalid_request_error`."""

_STOP_REASONS = {"tool_calls": "tool_use", "length": "max_tokens"}


class MessagesRequest(BaseModel):
    """What the gateway reads of a request; `thinking`, `cache_control`, sampling are ignored."""

    model: str = ""
    system: str | list[dict[str, Any]] | None = None
    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = None
    stream: bool | None = None
    max_tokens: int | None = Field(None, ge=1)


def read_request(body: bytes) -> ChatRequest:
    """Read a body of either route. Raises BadRequest, also on images and other non-text blocks.

    A tool result becomes a message of its own with role `tool`, in the order of the blocks; text
    blocks that follow each other become one string, joined by line ends.
    """
    request = validate(MessagesRequest, load(body))
    messages = _system(request.system)
    for index, message in enumerate(request.messages):
        messages += _read_message(message, f"messages.{index}")
    return ChatRequest(
        model=request.model,
        messages=messages,
        tools=[_read_tool(tool, index) for index, tool in enumerate(request.tools or [])] or None,
        stream=request.stream,
        max_tokens=request.max_tokens,
    )


def _system(system: str | list[dict[str, Any]] | None) -> list[Message]:
    text = _text(system or "", "system")
    return [{"role": "system", "content": text}] if text else []


def _read_message(message: dict[str, Any], where: str) -> list[Message]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise BadRequest(f"{where}.role: unknown role {role!r}")
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise BadRequest(f"{where}.content: neither a string nor a list of blocks")
    if role == "assistant":
        return [_read_assistant(content, where)]
    messages: list[Message] = []
    for index, block in enumerate(content):
        place = f"{where}.content.{index}"
        if role == "user" and _kind(block) == "tool_result":
            messages.append(_read_result(block, place))
            continue
        text = _text([block], place)
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += f"\n{text}"
        else:
            messages.append({"role": role, "content": text})
    return messages or [{"role": role, "content": ""}]


def _read_assistant(content: list[Any], where: str) -> Message:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    for index, block in enumerate(content):
        place = f"{where}.content.{index}"
        match _kind(block):
            case "thinking" | "redacted_thinking":
                continue
            case "tool_use":
                calls.append(_read_call(block, place))
            case _:
                texts.append(_text([block], place))
    message: Message = {"role": "assistant", "content": "\n".join(texts)}
    return message | ({"tool_calls": calls} if calls else {})


def _read_call(block: dict[str, Any], where: str) -> dict[str, Any]:
    name, call_id = block.get("name"), block.get("id")
    if not isinstance(name, str) or not isinstance(call_id, str):
        raise BadRequest(f"{where}: a tool_use block without a name or an id")
    arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _read_result(block: dict[str, Any], where: str) -> Message:
    call_id = block.get("tool_use_id")
    if not isinstance(call_id, str):
        raise BadRequest(f"{where}: a tool_result block without a tool_use_id")
    text = _text(block.get("content") or "", f"{where}.content")
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def _read_tool(tool: dict[str, Any], index: int) -> ToolSchema:
    name, schema = tool.get("name"), tool.get("input_schema")
    if not isinstance(name, str) or not isinstance(schema, dict):
        raise BadRequest(
            f"tools.{index}: a tool needs a name and an input_schema; tools that run on the "
            "maker's servers can't be served"
        )
    description = tool.get("description")
    function: dict[str, Any] = {"name": name}
    if isinstance(description, str):
        function["description"] = description
    return {"type": "function", "function": function | {"parameters": schema}}


def _text(content: Any, where: str) -> str:
    """A string, or text blocks as one."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{where}: neither a string nor a list of blocks")
    texts: list[str] = []
    for block in content:
        if _kind(block) != "text" or not isinstance(block.get("text"), str):
            _refuse(block, where)
        texts.append(block["text"])
    return "\n".join(texts)


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None


def _refuse(block: Any, where: str) -> NoReturn:
    kind = _kind(block)
    if kind in ("image", "document"):
        raise BadRequest(f"{where}: this model reads text only, no {kind}")
    raise BadRequest(f"{where}: a block of type {kind!r} can't be read here")


def write_completion(answer: Answer, model: str, created: int) -> bytes:
    """The answer as one `message` object. `input` of a malformed call is empty: JSON has no other.

    The format has no time; `created` is there because every wire gets it.
    """
    message = _message(model) | {
        "content": [*_text_blocks(answer), *map(_tool_use, answer.calls)],
        "stop_reason": _stop_reason(answer),
        "usage": _usage(answer),
    }
    return json.dumps(message).encode()


def write_events(answer: Answer, model: str, created: int) -> Iterator[bytes]:
    """The answer as server-sent events: each block started, filled by one delta, and stopped.

    The arguments of a call go out as the model wrote them, malformed ones too.
    """
    start = _usage(answer) | {"output_tokens": 0}
    yield _event("message_start", message=_message(model) | {"usage": start})
    filled = [(block | {"text": ""}, _text_delta(block)) for block in _text_blocks(answer)]
    filled += [(_tool_use(call) | {"input": {}}, _input_delta(call)) for call in answer.calls]
    for index, (block, delta) in enumerate(filled):
        yield _event("content_block_start", index=index, content_block=block)
        yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=_usage(answer))
    yield _event("message_stop")


def write_count(tokens: int) -> bytes:
    """The answer of `count_tokens`."""
    return json.dumps({"input_tokens": tokens}).encode()


def write_error(message: str, status: int = HTTPStatus.BAD_REQUEST) -> bytes:
    """An error in Anthropic's form."""
    kind = ERROR_TYPES.get(status, "invalid_request_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def _message(model: str) -> dict[str, Any]:
    """An empty message. Its id is new each time, since clients join messages of one id."""
    return {
        "id": f"msg_{secrets.token_hex(12)}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _text_blocks(answer: Answer) -> list[dict[str, Any]]:
    return [{"type": "text", "text": answer.content}] if answer.content else []


def _text_delta(block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text_delta", "text": block["text"]}


def _input_delta(call: ToolCall) -> dict[str, Any]:
    return {"type": "input_json_delta", "partial_json": call.arguments}


def _tool_use(call: ToolCall) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": _input(call.arguments)}


def _input(arguments: str) -> dict[str, Any]:
    """The object that the arguments are, or an empty one; NaN and its kin are no JSON."""
    try:
        value = json.loads(arguments, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _stop_reason(answer: Answer) -> str:
    return _STOP_REASONS.get(answer.finish_reason, "end_turn")


def _usage(answer: Answer) -> dict[str, Any]:
    """Input tokens are those that no cache held, as the format has it."""
    return {
        "input_tokens": answer.prompt_tokens - answer.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": answer.cached_tokens,
        "output_tokens": answer.output_tokens,
    }


def _event(kind: str, **values: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind} | values)}\n\n".encode()
