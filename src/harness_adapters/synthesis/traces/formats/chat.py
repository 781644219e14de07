"""Chat messages: what hermes, mini-swe-agent, the Hub's STS format and many data sets hold.

`messages` reads one list of messages in the forms of OpenAI (`tool_calls`, role `tool`), Anthropic
(blocks of type `tool_use` and `tool_result`) and ShareGPT (`from`, `value`, `<tool_call>` in text).
`Chat` is the reader for lists of messages that no other format claims.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker

_ROLES = {"human": "user", "gpt": "assistant", "observation": "tool", "function": "tool"}
_ROLES |= {"tool_response": "tool", "function_response": "tool", "ai": "assistant"}
_TAGGED = re.compile(r"<(tool_call|tool_response)>\s*(.*?)\s*</\1>", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_LISTS = ("messages", "conversations", "trajectory", "history", "conversation")


def message_list(record: Record) -> list[Record]:
    """The messages of a record, under whichever of the usual names; a list in JSON text, too."""
    for key in _LISTS:
        found = values.embedded(record.get(key))
        if isinstance(found, list):
            entries = [entry for entry in found if isinstance(entry, dict)]
            if any("role" in entry or "from" in entry for entry in entries[:4]):
                return entries
    return []


def role_of(message: Record) -> str:
    """`system`, `user`, `assistant`, `tool`, or what the log says else."""
    role = values.text(message.get("role")) or values.text(message.get("from"))
    return _ROLES.get(role, role)


def read_messages(draft: Draft, messages: Iterable[Record]) -> None:
    """Read messages in order into one session."""
    for message in messages:
        read_message(draft, message)


def read_message(draft: Draft, message: Record) -> None:
    """Read one message."""
    role = role_of(message)
    time = values.seconds(message.get("timestamp"))
    found = message.get("content", message.get("value"))
    if role == "assistant":
        _answer(draft, message, found, time)
    elif role == "tool":
        _tool(draft, message, found, time)
    elif role in ("user", "system", "developer"):
        _said(draft, role, found, time)
    elif role:
        draft.note("records_beside_the_conversation")
    else:
        draft.note("odd_records")


def _said(draft: Draft, role: str, found: Any, time: float | None) -> None:
    blocks = list(values.mappings(found))
    for block in blocks:
        if block.get("type") == "tool_result":
            call_id = values.text(block.get("tool_use_id"))
            _result(draft, call_id, block.get("content"), time, block.get("is_error") is True)
    rest = [b for b in blocks if b.get("type") != "tool_result"] if blocks else found
    text, images = values.content(rest)
    if text or images or not blocks:
        speaker = Speaker.USER if role == "user" else Speaker.HARNESS
        draft.said(speaker, text, images=images, time=time)


def _answer(draft: Draft, message: Record, found: Any, time: float | None) -> None:
    blocks = list(values.mappings(found))
    text, _ = values.content(
        [b for b in blocks if b.get("type") not in ("tool_use", "thinking")] if blocks else found
    )
    reasoning = next(
        (
            message[key]
            for key in ("reasoning_content", "reasoningContent", "reasoning", "thought")
            if isinstance(message.get(key), str)
        ),
        "\n".join(values.text(b.get("thinking")) for b in blocks),
    )
    tagged = []
    if "<tool_call>" in text:
        tagged = [values.parse(body) for tag, body in _TAGGED.findall(text) if tag == "tool_call"]
        thoughts = _THOUGHT.findall(text)
        reasoning = reasoning or "\n".join(thoughts)
        text = _TAGGED.sub("", _THOUGHT.sub("", text)).strip()
    model = values.text(message.get("model"))
    draft.facts(model=model)
    draft.answer(text=text, reasoning=reasoning, model=model, time=time)
    requested = message.get("tool_calls") or message.get("toolCalls")
    for call in values.mappings(values.embedded(requested)):
        function = values.mapping(call.get("function")) or call
        call_id = values.text(call.get("id")) or values.text(call.get("call_id"))
        name = values.text(function.get("name"))
        draft.call(make_call(call_id, name, function.get("arguments"), time=time))
    legacy = values.mapping(message.get("function_call"))
    if legacy and not requested:
        name = values.text(legacy.get("name"))
        draft.call(make_call("", name, legacy.get("arguments"), time=time))
    for block in blocks:
        if block.get("type") == "tool_use":
            name = values.text(block.get("name"))
            draft.call(make_call(values.text(block.get("id")), name, block.get("input"), time=time))
    for body in tagged:
        if isinstance(body, dict):
            name = values.text(body.get("name"))
            call_id = values.text(body.get("id"))
            draft.call(make_call(call_id, name, body.get("arguments"), time=time))
        else:
            draft.note("malformed_arguments")
            draft.call(make_call("", "", {}, time=time))


def _tool(draft: Draft, message: Record, found: Any, time: float | None) -> None:
    text = found if isinstance(found, str) else ""
    if "<tool_response>" in text:
        for tag, body in _TAGGED.findall(text):
            if tag == "tool_response":
                inner = values.mapping(values.parse(body))
                call_id = values.text(inner.get("tool_call_id"))
                _result(draft, call_id, inner.get("content", body), time, False)
        return
    call_id = values.text(message.get("tool_call_id")) or values.text(message.get("toolCallId"))
    ids = values.sequence(message.get("tool_call_ids"))
    if not call_id and ids:
        call_id = values.text(ids[0])
    failed = message.get("finish_reason") == "error" or message.get("is_error") is True
    code = values.integer(values.mapping(message.get("extra")).get("returncode"))
    _result(draft, call_id, found, time, failed, code)


def _result(
    draft: Draft,
    call_id: str,
    found: Any,
    time: float | None,
    failed: bool,
    code: int | None = None,
) -> None:
    text, images = values.content(found)
    text = text or values.plain(found)
    inner = values.mapping(values.parse(text)) if text.lstrip().startswith("{") else {}
    running = "pid" in inner and "session_id" in inner
    if code is None and not running:
        code = exit_codes.in_object(found) if isinstance(found, dict) else exit_codes.stated(text)
    diff, path = values.text(inner.get("diff")), values.text(inner.get("resolved_path"))
    draft.result(
        Result(
            text=text,
            call_id=call_id or draft.unanswered(),
            exit_code=code,
            failed=failed or bool(inner.get("error")),
            running=running,
            truncated=inner.get("truncated") is True,
            images=images,
            time=time,
        ),
        diffs={path: diff} if diff and path else None,
    )


class Chat:
    """Reads records that hold a list of chat messages."""

    name = "chat"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """A list of messages with roles, or messages line by line."""
        return any(message_list(record) for record in head) or any(
            role_of(record) in ("user", "assistant", "system") and "content" in record
            for record in head
        )

    def feed(self, record: Record) -> None:
        """Read one conversation."""
        messages = message_list(record)
        if messages:
            draft = self._out.whole(identity_of(record))
            describe(draft, record)
            read_messages(draft, messages)
            self._out.close(draft.id)
        elif role_of(record) and ("content" in record or "value" in record):
            read_message(self._out.draft(""), record)
        else:
            self._out.notes["records_beside_the_conversation"] += 1

    def finish(self) -> None:
        """Nothing is held back."""


def identity_of(record: Record) -> str:
    """What a record calls itself."""
    for key in ("session_id", "id", "traj_id", "trajectory_id", "instance_id", "task_id"):
        if isinstance(record.get(key), str | int):
            return str(record[key])
    return ""


def describe(draft: Draft, record: Record) -> None:
    """Keep what stands beside the messages: model, working directory, instance, reward."""
    draft.facts(model=values.text(record.get("model")), cwd=values.text(record.get("cwd")))
    for key in ("instance_id", "reward", "resolved", "exit_status", "completed", "dataset_name"):
        if isinstance(record.get(key), str | int | float):
            draft.meta[key] = record[key]
