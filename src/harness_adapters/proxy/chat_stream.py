"""OpenAI Chat Completions through the guard: streamed answers.

Format: OpenAI API reference, the object `chat.completion.chunk`. In a stream a call comes in parts
that may interleave with others, and nothing but the choice's finish says that it is whole. So from
the first part of a call on, everything is held until each choice with calls has finished and its
calls are judged; then it leaves as it came, or rewritten without the blocked ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness_adapters.proxy.chat import (
    DONE,
    KEPT_OF_CHUNK,
    KEPT_OF_DELTA,
    finish_without,
    function_of,
    write_error,
)
from harness_adapters.proxy.events import Event, write_event
from harness_adapters.proxy.judging import Bench, Call, Ruling
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


@dataclass(slots=True)
class _Parts:
    """A call as far as it has come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    size: int = 0
    ruling: Ruling | None = None

    def call(self, index: int) -> Call:
        return Call(self.id or f"call_{index}", self.name, "".join(self.arguments))


@dataclass(slots=True)
class _Choice:
    """One of the `n` answers of a request."""

    calls: dict[int, _Parts] = field(default_factory=dict[int, _Parts])
    finished: bool = False
    spoke: bool = False
    """Text has gone out."""
    has_role: bool = False
    """Clients join what comes twice, a role as well."""

    @property
    def blocked(self) -> list[Ruling]:
        rulings = (self.calls[index].ruling for index in sorted(self.calls))
        return [ruling for ruling in rulings if ruling is not None and not ruling.passes]

    @property
    def positions(self) -> dict[int, int]:
        """Old index to new one, of the calls that pass."""
        passing = (i for i in sorted(self.calls) if (r := self.calls[i].ruling) and r.passes)
        return {old: new for new, old in enumerate(passing)}


class ChatFilter:
    """One streamed answer; `max_call` characters of arguments, `max_held` bytes held at most."""

    def __init__(self, bench: Bench, *, max_call: int, max_held: int) -> None:
        self._bench = bench
        self._max_call, self._max_held = max_call, max_held
        self._choices: dict[int, _Choice] = {}
        self._held: list[tuple[bytes, dict[str, Any] | None]] = []
        self._held_bytes = 0
        self._head: dict[str, Any] = {}

    @property
    def holding(self) -> bool:
        """Whether something waits for a verdict."""
        return bool(self._held)

    async def feed(self, event: Event) -> bytes:
        """What may go out after this event. Raises Unreadable, Oversize, StoreError."""
        if not event.data:
            return self._pass(event.raw, None)
        if event.data.strip() == DONE:
            for number in self._choices:
                await self._finish(number)
            return self._release() + event.raw
        if not self._held and (plain := load_plain(event.data)) is not None:
            self._note(an_object(plain, "a chunk"))
            return event.raw
        chunk = an_object(load(event.data), "a chunk")
        finished = self._read(chunk)
        if not self._held and not self._open():
            self._note(chunk)
            return event.raw
        out = self._pass(event.raw, chunk)
        for number in finished:
            await self._finish(number)
        return out if self._open() else out + self._release()

    def end(self) -> bytes:
        """The upstream has closed the stream. Raises Unreadable when a call was not whole."""
        if self._held:
            raise Unreadable("the answer ended within a call")
        return b""

    def abandon(self, rule: str, reason: str) -> int:
        """Put on record the calls that will never be judged; their number. Raises StoreError."""
        lost = 0
        for choice in self._choices.values():
            for index, parts in choice.calls.items():
                if parts.ruling is None:
                    parts.ruling = self._bench.refuse(parts.call(index), rule, reason)
                    lost += 1
        return lost

    def close(self) -> bytes:
        """An end of the answer after `abandon`, in order: notices, finish, `[DONE]`."""
        return self._release() + b"data: [DONE]\n\n"

    def error(self, message: str, status: int) -> bytes:
        """An error within the stream, which ends it."""
        return write_event(write_error(message, status))

    def _pass(self, raw: bytes, chunk: dict[str, Any] | None) -> bytes:
        if chunk is None and not self._held:
            return raw
        self._held.append((raw, chunk))
        self._held_bytes += len(raw)
        if self._held_bytes > self._max_held:
            raise Oversize(f"more than {self._max_held} bytes wait for a verdict")
        return b""

    def _open(self) -> bool:
        return any(p.ruling is None for c in self._choices.values() for p in c.calls.values())

    def _read(self, chunk: dict[str, Any]) -> list[int]:
        """Take in one chunk; gives the choices that it finishes."""
        choices = chunk.get("choices")
        if carries_call(without(chunk, "choices")):
            raise Unreadable("a call outside of the choices")
        if choices is None:
            return []
        if not isinstance(choices, list):
            raise Unreadable("the choices are no list")
        self._head = chunk
        return [number for one in choices if (number := self._read_choice(one)) is not None]

    def _read_choice(self, value: Any) -> int | None:
        values = an_object(value, "a choice")
        number = an_index(values.get("index", 0), "a choice")
        choice = self._choices.setdefault(number, _Choice())
        delta = an_object(values.get("delta") or {}, "a delta")
        outside = without(values, "delta", "logprobs")
        if carries_call(outside) or carries_call(without(delta, "tool_calls")):
            raise Unreadable("a call in a form that is not known")
        choice.has_role = choice.has_role or bool(delta.get("role"))
        parts = delta.get("tool_calls") or []
        if not isinstance(parts, list):
            raise Unreadable("the calls are no list")
        for part in parts:
            if choice.finished:
                raise Unreadable("a call after the end of its answer")
            self._read_part(choice, one_spelling(an_object(part, "a call")))
        if a_text(values.get("finish_reason"), "the finish reason"):
            choice.finished = True
            return number
        return None

    def _read_part(self, choice: _Choice, part: dict[str, Any]) -> None:
        name, arguments = function_of(part)
        if not isinstance(arguments, str):
            raise Unreadable("the arguments of a call are no string")
        parts = choice.calls.setdefault(an_index(part.get("index"), "a call"), _Parts())
        parts.id = _same(parts.id, a_text(part.get("id"), "the id of a call"))
        parts.name = _same(parts.name, name)
        parts.arguments.append(arguments)
        parts.size += len(arguments)
        if parts.size > self._max_call:
            raise Oversize(f"the arguments of a call are longer than {self._max_call} characters")

    async def _finish(self, number: int) -> None:
        for index, parts in sorted(self._choices[number].calls.items()):
            if parts.ruling is None:
                parts.ruling = await self._bench.judge(parts.call(index))

    def _release(self) -> bytes:
        """All that is held, less what is blocked."""
        held, self._held, self._held_bytes = self._held, [], 0
        blocked = {n: c for n, c in self._choices.items() if c.blocked}
        if not blocked:
            for choice in self._choices.values():
                choice.calls.clear()
            return b"".join(raw for raw, _ in held)
        out: list[bytes] = []
        for raw, chunk in held:
            out += [raw] if chunk is None or not chunk.get("choices") else self._rewritten(chunk)
        for number in list(blocked):
            if notices := self._notices(number, last=True):  # its finish never came
                out.append(notices)
        for choice in self._choices.values():
            choice.calls.clear()
        return b"".join(out)

    def _rewritten(self, chunk: dict[str, Any]) -> Iterator[bytes]:
        kept: list[dict[str, Any]] = []
        for values in chunk["choices"]:
            number = values.get("index", 0)
            choice, finish = self._choices[number], values.get("finish_reason")
            if finish and choice.blocked:
                finish = finish_without(choice.positions, finish)
            delta = _kept_delta(values.get("delta") or {}, choice.positions)
            choice.spoke = choice.spoke or bool(delta.get("content"))
            if finish and (notices := self._notices(number)):
                if delta:
                    yield self._chunk([{"index": number, "delta": delta, "finish_reason": None}])
                    delta = {}
                yield notices
            if delta or finish:
                kept.append({"index": number, "delta": delta, "finish_reason": finish})
        if kept or chunk.get("usage"):
            head = {key: chunk[key] for key in KEPT_OF_CHUNK if key in chunk}
            yield write_event(dumps(head | {"choices": kept}))

    def _notices(self, number: int, *, last: bool = False) -> bytes:
        """A chunk with the notices of a choice, once; `last` gives it a finish, too."""
        choice = self._choices[number]
        text = "\n".join(ruling.notice for ruling in choice.blocked)
        if not text:
            return b""
        finish = finish_without(choice.positions, "tool_calls") if last else None
        choice.calls = {i: p for i, p in choice.calls.items() if p.ruling and p.ruling.passes}
        delta = {"content": ("\n" if choice.spoke else "") + text}
        if not choice.has_role:
            delta["role"] = "assistant"
        choice.spoke = choice.has_role = True
        return self._chunk([{"index": number, "delta": delta, "finish_reason": finish}])

    def _chunk(self, choices: list[dict[str, Any]]) -> bytes:
        head = {key: self._head[key] for key in KEPT_OF_CHUNK if key in self._head}
        return write_event(dumps(without(head, "usage") | {"choices": choices}))

    def _note(self, chunk: dict[str, Any]) -> None:
        """Remember of a chunk without calls which choices spoke in it, and which ended."""
        for values in chunk.get("choices") or ():
            values = an_object(values, "a choice")
            choice = self._choices.setdefault(values.get("index", 0), _Choice())
            delta = an_object(values.get("delta") or {}, "a delta")
            choice.spoke = choice.spoke or bool(delta.get("content"))
            choice.has_role = choice.has_role or bool(delta.get("role"))
            choice.finished = choice.finished or bool(values.get("finish_reason"))


def _same(before: str, now: str) -> str:
    """Some clients join the parts of a name, others take the last: only one value is safe."""
    if before and now and before != now:
        raise Unreadable("a call changed its name or its id on the way")
    return before or now


def _kept_delta(delta: dict[str, Any], positions: dict[int, int]) -> dict[str, Any]:
    kept = {key: delta[key] for key in KEPT_OF_DELTA if delta.get(key)}
    parts = delta.get("tool_calls") or []
    passing = [
        part | {"index": positions[part["index"]]} for part in parts if part["index"] in positions
    ]
    return kept | ({"tool_calls": passing} if passing else {})
