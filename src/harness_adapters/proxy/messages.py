"""Anthropic Messages through the guard: streams and whole answers.

Format: Anthropic API reference, `POST /v1/messages`, version `2023-06-01`. A call is a content
block with a start and a stop of its own: it is held in between, and whatever comes after it waits,
so that the order stays. A blocked call's block becomes a text block in the same place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_adapters.proxy.events import Event, write_event
from harness_adapters.proxy.judging import Bench, Call, Ruling, ruling_on
from harness_adapters.proxy.shapes import (
    Oversize,
    Unreadable,
    a_text,
    an_index,
    an_object,
    carries_call,
    dumps,
    load,
    load_plain,
    one_spelling,
    without,
)

CALL = "tool_use"
DELTAS: Mapping[str, tuple[str, ...]] = {
    "text": ("text_delta", "citations_delta"),
    "thinking": ("thinking_delta", "signature_delta"),
    "redacted_thinking": (),
    CALL: ("input_json_delta",),
}
"""Kinds of blocks that can be read, each with its kinds of deltas. Calls that ran at the maker's
(`server_tool_use` and its like) are none: nothing is left to decide when they arrive."""

DONE = "[DONE]"
"""Not of this format, but some servers end its streams with it as well."""

ERROR_TYPES: Mapping[int, str] = {403: "permission_error", 413: "request_too_large"}


@dataclass(slots=True)
class _Block:
    """A content block that has started."""

    kind: str
    id: str = ""
    name: str = ""
    start: str = ""
    """Arguments that came with the start."""
    deltas: list[str] = field(default_factory=list[str])
    size: int = 0
    stopped: bool = False
    ruling: Ruling | None = None

    def call(self, index: int) -> Call:
        return Call(self.id or f"block_{index}", self.name, "".join(self.deltas) or self.start)


class MessagesFilter:
    """One streamed answer; `max_call` characters of arguments, `max_held` bytes held at most."""

    def __init__(self, bench: Bench, *, max_call: int, max_held: int) -> None:
        self._bench = bench
        self._max_call, self._max_held = max_call, max_held
        self._blocks: dict[int, _Block] = {}
        self._held: list[tuple[bytes, int | None, str]] = []
        """Bytes, index of the call that they belong to, kind of the event."""
        self._held_bytes = 0
        self._passed = self._blocked = 0

    @property
    def holding(self) -> bool:
        """Whether something waits for a verdict."""
        return bool(self._held)

    async def feed(self, event: Event) -> bytes:
        """What may go out after this event. Raises Unreadable, Oversize, StoreError."""
        if not event.data or event.data.strip() == DONE:
            return self._pass(event.raw, None, "")
        if not self._held and self._is_text(event):
            return event.raw
        value = an_object(load(event.data), "an event")
        kind = a_text(value.get("type"), "the type of an event")
        if event.name is not None and event.name != kind:
            raise Unreadable("an event has two types")
        raw, owner = event.raw, None
        if kind.startswith("content_block_"):
            owner = self._read(kind, value)
        elif carries_call(value):
            raise Unreadable("a call outside of the content blocks")
        elif kind in ("message_delta", "message_stop"):
            if self._open():
                raise Unreadable("the answer ended within a call")
            raw = self._with_stop_reason(value, raw)
        out = self._pass(raw, owner, kind)
        if owner is not None and kind == "content_block_stop":
            block = self._blocks[owner]
            self._count(block, await ruling_on(self._bench, block.call(owner), self._max_call))
        return out if self._open() else out + self._release()

    def end(self) -> bytes:
        """The upstream has closed the stream. Raises Unreadable when a call was not whole."""
        if self._held:
            raise Unreadable("the answer ended within a call")
        return b""

    def abandon(self, rule: str, reason: str) -> int:
        """Put on record the calls that will never be judged; their number. Raises StoreError."""
        lost = 0
        for index, block in self._blocks.items():
            if block.kind == CALL and block.ruling is None:
                self._count(block, self._bench.refuse(block.call(index), rule, reason))
                lost += 1
        return lost

    def close(self) -> bytes:
        """An end of the answer after `abandon`, in order: notices, stop reason, `message_stop`."""
        out = [self._release()]
        for index, block in self._blocks.items():
            if block.kind != CALL and not block.stopped:
                out.append(_event("content_block_stop", index=index))
        reason = CALL if self._passed else "end_turn"
        delta = {"stop_reason": reason, "stop_sequence": None}
        out.append(_event("message_delta", delta=delta, usage={"output_tokens": 0}))
        return b"".join([*out, _event("message_stop")])

    def error(self, message: str, status: int) -> bytes:
        """An error within the stream, which ends it."""
        return write_event(write_error(message, status), "error")

    def _is_text(self, event: Event) -> bool:
        """Whether this is a piece of a text block, which most events are."""
        if event.name != "content_block_delta":
            return False
        value = load_plain(event.data)
        if not isinstance(value, dict) or value.get("type") != event.name:
            return False
        block = self._blocks.get(an_index(value.get("index"), "a content block"))
        delta = value.get("delta")
        words = isinstance(delta, dict) and delta.get("type") == "text_delta"
        return words and block is not None and block.kind == "text" and not block.stopped

    def _pass(self, raw: bytes, owner: int | None, kind: str) -> bytes:
        if owner is None and not self._held:
            return raw
        self._held.append((raw, owner, kind))
        self._held_bytes += len(raw)
        if self._held_bytes > self._max_held:
            raise Oversize(f"more than {self._max_held} bytes wait for a verdict")
        return b""

    def _open(self) -> bool:
        return any(b.kind == CALL and b.ruling is None for b in self._blocks.values())

    def _count(self, block: _Block, ruling: Ruling) -> None:
        block.ruling = ruling
        self._passed += ruling.passes
        self._blocked += not ruling.passes

    def _read(self, kind: str, value: dict[str, Any]) -> int | None:
        """Take in an event of a block; gives its index when it belongs to a call."""
        index = an_index(value.get("index"), "a content block")
        if kind == "content_block_start":
            if index in self._blocks:
                raise Unreadable("two content blocks have one index")
            self._blocks[index] = self._started(value)
        elif index not in self._blocks or self._blocks[index].stopped:
            raise Unreadable("a part of a content block that is not there")
        block = self._blocks[index]
        if block.kind != CALL and carries_call(value):
            raise Unreadable("a call in a form that is not known")
        if kind == "content_block_delta":
            self._add(block, value)
        elif kind == "content_block_stop":
            if carries_call(value):
                raise Unreadable("a call in the end of a content block")
            block.stopped = True
        elif kind != "content_block_start":
            raise Unreadable(f"an event of type {kind!r}")
        return index if block.kind == CALL else None

    def _started(self, value: dict[str, Any]) -> _Block:
        content = an_object(value.get("content_block"), "a content block")
        kind = a_text(content.get("type"), "the type of a content block")
        if kind not in DELTAS:
            raise Unreadable(f"a content block of type {kind!r}")
        if kind != CALL:
            return _Block(kind)
        if carries_call(without(one_spelling(value), "content_block")):
            raise Unreadable("a call within a call")
        call = _whole_call(content, 0)
        return _Block(kind, call.id, call.name, "" if call.arguments == "{}" else call.arguments)

    def _add(self, block: _Block, value: dict[str, Any]) -> None:
        delta = an_object(value.get("delta"), "a delta")
        if delta.get("type") not in DELTAS[block.kind]:
            raise Unreadable(f"a delta of type {delta.get('type')!r} in a {block.kind} block")
        if block.kind != CALL:
            return
        inside = without(one_spelling(delta), "type", "partial_json")
        if carries_call(without(value, "delta")) or carries_call(inside):
            raise Unreadable("a call within a call")
        part = a_text(delta.get("partial_json"), "a part of a call's input")
        if part and block.start:
            raise Unreadable("a call has its input twice")
        block.deltas.append(part)
        block.size += len(part)
        if block.size > self._max_call:
            raise Oversize(f"the input of a call is longer than {self._max_call} characters")

    def _with_stop_reason(self, value: dict[str, Any], raw: bytes) -> bytes:
        """The event as it came, unless it says that calls follow and all were blocked."""
        delta = value.get("delta")
        if not self._blocked or self._passed or not isinstance(delta, dict):
            return raw
        if delta.get("stop_reason") != CALL:
            return raw
        value = value | {"delta": delta | {"stop_reason": "end_turn"}}
        return write_event(dumps(value), a_text(value["type"], "the type of an event"))

    def _release(self) -> bytes:
        """All that is held, with notices for what is blocked."""
        held, self._held, self._held_bytes = self._held, [], 0
        out: list[bytes] = []
        for raw, owner, kind in held:
            ruling = None if owner is None else self._blocks[owner].ruling
            if owner is None or ruling is None or ruling.passes:
                out.append(raw)
            elif kind == "content_block_start":
                out += _text_block(owner, ruling.notice)
        return b"".join(out)


async def filter_messages(body: bytes, bench: Bench, *, max_call: int) -> bytes:
    """A whole answer, the same bytes when all calls pass.

    Raises Unreadable, StoreError.
    """
    answer = an_object(load(body), "the answer")
    if carries_call(without(answer, "content")):
        raise Unreadable("a call outside of the content")
    blocks = answer.get("content")
    if blocks is None:
        return body
    if not isinstance(blocks, list):
        raise Unreadable("the content is no list")
    rulings: list[Ruling | None] = []
    for index, block in enumerate(blocks):
        kind = an_object(block, "a content block").get("type")
        if kind not in DELTAS or (kind != CALL and carries_call(block)):
            raise Unreadable(f"a content block of type {kind!r}")
        if kind == CALL:
            rulings.append(await ruling_on(bench, _whole_call(block, index), max_call))
        else:
            rulings.append(None)
    if not any(ruling and not ruling.passes for ruling in rulings):
        return body
    content = [
        {"type": "text", "text": ruling.notice} if ruling and not ruling.passes else block
        for block, ruling in zip(blocks, rulings, strict=True)
    ]
    answer["content"] = content
    if answer.get("stop_reason") == CALL and not any(r and r.passes for r in rulings):
        answer["stop_reason"] = "end_turn"
    return dumps(answer)


def _whole_call(block: dict[str, Any], index: int) -> Call:
    one_spelling(block)
    if carries_call(without(block, "type", "id", "name", "input")):
        raise Unreadable("a call within a call")
    given = an_object(block.get("input") or {}, "the input of a call")
    arguments = json.dumps(given, ensure_ascii=False)
    name = a_text(block.get("name"), "the name of a call")
    return Call(a_text(block.get("id"), "the id of a call") or f"block_{index}", name, arguments)


def _text_block(index: int, text: str) -> list[bytes]:
    return [
        _event("content_block_start", index=index, content_block={"type": "text", "text": ""}),
        _event("content_block_delta", index=index, delta={"type": "text_delta", "text": text}),
        _event("content_block_stop", index=index),
    ]


def _event(kind: str, **values: Any) -> bytes:
    return write_event(dumps({"type": kind} | values), kind)


def write_error(message: str, status: int) -> bytes:
    """An error in Anthropic's form."""
    kind = ERROR_TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return dumps({"type": "error", "error": {"type": kind, "message": message}})
