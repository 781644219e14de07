"""The OpenAI Chat Completions wire: requests read, messages normalised, answers written.

Format: OpenAI API reference, `POST /v1/chat/completions`, with `stream` as server-sent events. It
is also the project's own form of messages and tools, so other wires translate into it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from harness_adapters.records import Message, ToolCall, ToolSchema

ID = "chatcmpl-gateway"

RequestForm = TypeVar("RequestForm", bound=BaseModel)


class BadRequest(Exception):  # noqa: N818 - named after the HTTP status; never leaves this package
    """A request that can't be served; `str(error)` goes into the error answer."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class ChatRequest(BaseModel):
    """What the gateway reads of a request. Sampling fields are ignored: sampling is pinned."""

    model: str = ""
    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = None
    stream: bool | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)

    @property
    def limit(self) -> int | None:
        """Output tokens that the harness asked for at most."""
        return self.max_completion_tokens or self.max_tokens


@dataclass(frozen=True, slots=True)
class Answer:
    """What the harness gets: text, and the calls that it may run."""

    content: str
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    finish: str = "stop"
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def finish_reason(self) -> str:
        """`tool_calls` whenever there are calls; agents drop calls of a `length` answer."""
        return "tool_calls" if self.calls else self.finish

    @property
    def usage(self) -> dict[str, Any]:
        """The `usage` object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.output_tokens,
            "total_tokens": self.prompt_tokens + self.output_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


def read_request(body: bytes) -> ChatRequest:
    """Read a request body. Raises BadRequest."""
    return validate(ChatRequest, load(body))


def load(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is. Raises BadRequest."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise BadRequest("the body is not a JSON object")
    return values


def validate(form: type[RequestForm], values: dict[str, Any]) -> RequestForm:
    """`values` as the fields of `form`. Raises BadRequest naming the first wrong one."""
    try:
        return form.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadRequest(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def normalise_messages(messages: list[dict[str, Any]]) -> list[Message]:
    """Messages with string content and only the keys that a chat template may read.

    Raises BadRequest on a message without a role or with content of another shape.
    """
    return [_normalise(message, index) for index, message in enumerate(messages)]


def normalise_tools(tools: list[dict[str, Any]]) -> list[ToolSchema]:
    """Function tools as they came, text made encodable. Raises BadRequest on any other kind."""
    for index, tool in enumerate(tools):
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest(f"tools.{index}: not a function tool")
    return [_encodable(tool) for tool in tools]


def _normalise(message: dict[str, Any], index: int) -> Message:
    role = message.get("role")
    if role == "developer":
        role = "system"
    if role not in ("system", "user", "assistant", "tool"):
        raise BadRequest(f"messages.{index}.role: unknown role {role!r}")
    clean: Message = {"role": role, "content": _text(message.get("content"), index)}
    for key in ("tool_call_id", "name"):
        if isinstance(message.get(key), str):
            clean[key] = message[key]
    if role == "assistant" and message.get("tool_calls"):
        clean["tool_calls"] = _echoed_calls(message["tool_calls"], index)
    result: Message = _encodable(clean)
    return result


def _text(content: Any, index: int) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"messages.{index}.content: neither a string nor a list of parts")
    texts: list[str] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in ("text", "refusal"):
            texts.append(str(part.get(kind, "")))
        else:
            texts.append(f"[{str(kind).removesuffix('_url')} not shown]")
    return "\n".join(texts)


def _echoed_calls(calls: Any, index: int) -> list[dict[str, Any]]:
    clean: list[dict[str, Any]] = []
    for call in calls if isinstance(calls, list) else [calls]:
        call = call if isinstance(call, dict) else {}
        function = call.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BadRequest(f"messages.{index}.tool_calls: not a list of function calls")
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments or {}, ensure_ascii=False)
        clean.append(
            {
                "id": str(call.get("id", "")),
                "type": "function",
                "function": {"name": function["name"], "arguments": arguments},
            }
        )
    return clean


def _encodable(value: Any) -> Any:
    """Lone surrogates (JSON can carry them, UTF-8 and tokenizers can't) become U+FFFD."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return value


def new_messages(before: list[Message], now: list[Message]) -> list[Message]:
    """The messages of `now` after its longest common start with `before`."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        shared += 1
    return now[shared:]


def write_completion(answer: Answer, model: str, created: int) -> bytes:
    """The answer as one `chat.completion` object."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": answer.finish_reason,
        "logprobs": None,
    }
    return json.dumps(
        _head(model, created, "chat.completion") | {"choices": [choice], "usage": answer.usage}
    ).encode()


def write_events(answer: Answer, model: str, created: int) -> Iterator[bytes]:
    """The answer as server-sent events: the whole message, the finish, the usage, `[DONE]`."""
    head = _head(model, created, "chat.completion.chunk")
    delta: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.calls:
        delta["tool_calls"] = [{"index": i} | _call(call) for i, call in enumerate(answer.calls)]
    yield _event(head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    finish = {"index": 0, "delta": {}, "finish_reason": answer.finish_reason}
    yield _event(head | {"choices": [finish]})
    yield _event(head | {"choices": [], "usage": answer.usage})
    yield b"data: [DONE]\n\n"


def write_error(message: str, status: int = HTTPStatus.BAD_REQUEST) -> bytes:
    """An error in OpenAI's form; the type is the same for every status that is sent here."""
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
    return json.dumps({"error": error}).encode()


def _head(model: str, created: int, kind: str) -> dict[str, Any]:
    return {"id": ID, "object": kind, "created": created, "model": model}


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _event(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"
