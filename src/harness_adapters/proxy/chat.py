"""OpenAI Chat Completions through the guard: whole answers, and what streams share with them.

Format: OpenAI API reference, `POST /v1/chat/completions`, the object `chat.completion`.
"""

from __future__ import annotations

import json
from typing import Any

from harness_adapters.proxy.judging import Bench, Call, ruling_on
from harness_adapters.proxy.shapes import (
    Unreadable,
    a_text,
    an_object,
    carries_call,
    dumps,
    load,
    one_spelling,
    without,
)

DONE = "[DONE]"
KEPT_OF_CHUNK = (
    "id",
    "object",
    "created",
    "model",
    "system_fingerprint",
    "service_tier",
    "usage",
)
KEPT_OF_DELTA = ("role", "content", "refusal", "reasoning", "reasoning_content")
"""Of an answer with a blocked call only these go on: token ids, log-probabilities and fields of a
maker's own could hold parts of it."""


async def filter_chat(body: bytes, bench: Bench, *, max_call: int) -> bytes:
    """A whole answer, the same bytes when all calls pass.

    Raises Unreadable, StoreError.
    """
    answer = an_object(load(body), "the answer")
    choices = answer.get("choices")
    if carries_call(without(answer, "choices")):
        raise Unreadable("a call outside of the choices")
    if choices is None:
        return body
    if not isinstance(choices, list):
        raise Unreadable("the choices are no list")
    rewritten = [await _filter_choice(one, bench, max_call) for one in choices]
    if all(new is None for new in rewritten):
        return body
    kept = {key: answer[key] for key in KEPT_OF_CHUNK if key in answer}
    return dumps(kept | {"choices": [n or o for n, o in zip(rewritten, choices, strict=True)]})


async def _filter_choice(value: Any, bench: Bench, max_call: int) -> dict[str, Any] | None:
    """The choice without its blocked calls; None when none is blocked."""
    choice = an_object(value, "a choice")
    message = an_object(choice.get("message") or {}, "a message")
    outside = without(choice, "message", "logprobs")
    if carries_call(outside) or carries_call(without(message, "tool_calls")):
        raise Unreadable("a call in a form that is not known")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise Unreadable("the calls are no list")
    read = [_whole_call(call, index) for index, call in enumerate(calls)]
    rulings = [await ruling_on(bench, call, max_call) for call in read]
    if all(ruling.passes for ruling in rulings):
        return None
    text = a_text(message.get("content"), "the text of an answer with calls")
    notices = [ruling.notice for ruling in rulings if not ruling.passes]
    passing = [call for call, ruling in zip(calls, rulings, strict=True) if ruling.passes]
    kept = {key: message[key] for key in KEPT_OF_DELTA if key in message}
    kept["content"] = "\n".join([*([text] if text else []), *notices])
    if passing:
        kept["tool_calls"] = passing
    finish = finish_without(passing, choice.get("finish_reason"))
    return {"index": choice.get("index", 0), "message": kept, "finish_reason": finish}


def _whole_call(value: Any, index: int) -> Call:
    part = one_spelling(an_object(value, "a call"))
    name, arguments = function_of(part)
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    text = a_text(arguments, "the arguments of a call")
    return Call(a_text(part.get("id"), "the id of a call") or f"call_{index}", name, text)


def function_of(part: dict[str, Any]) -> tuple[str, Any]:
    """Name and arguments of a call or of a part of one."""
    function = one_spelling(an_object(part.get("function") or {}, "a function"))
    if part.get("type") not in (None, "", "function"):
        raise Unreadable(f"a call of type {part['type']!r}")
    if carries_call(without(part, "function")) or carries_call(
        without(function, "name", "arguments")
    ):
        raise Unreadable("a call within a call")
    arguments = function.get("arguments")
    name = a_text(function.get("name"), "the name of a call")
    return name, "" if arguments is None else arguments


def finish_without(calls_left: Any, finish: Any) -> Any:
    """The finish reason once blocked calls are out."""
    return "stop" if not calls_left and finish in ("tool_calls", "function_call") else finish


def write_error(message: str, status: int) -> bytes:
    """An error in OpenAI's form."""
    error = {"message": message, "type": "guard_error", "param": None, "code": str(status)}
    return dumps({"error": error})
