"""Streams of both wires as servers write them, and benches that judge by a word."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import pairwise

from harness_adapters.proxy.chat_stream import ChatFilter
from harness_adapters.proxy.events import Splitter
from harness_adapters.proxy.judging import Ruling
from harness_adapters.proxy.messages import MessagesFilter
from harness_adapters.records import Decision, Verdict

DANGER = "rm -rf"
"""A call with this in its arguments is blocked."""
SIZES = {"max_call": 1 << 16, "max_held": 1 << 20}


@dataclass
class WordBench:
    """Blocks by DANGER in the decoded arguments; remembers what it saw."""

    seen: list = field(default_factory=list)
    refused: list = field(default_factory=list)
    on_judge: object = None

    async def judge(self, call):
        await asyncio.sleep(0)
        if self.on_judge:
            self.on_judge(call)
        self.seen.append(call)
        text = call.arguments.encode().decode("unicode_escape", "replace")
        blocked = DANGER in text or DANGER in call.arguments
        return Ruling(not blocked, f"[{call.name} was blocked and not run: no]")

    def refuse(self, call, rule, reason):
        self.refused.append((call, rule))
        return Ruling(False, f"[{call.name} was blocked and not run: {reason}]")


class Client:
    """What the filters let through, joined, and after which event."""

    def __init__(self, filter_, limit=1 << 20):
        self.filter, self.splitter, self.got, self.after = filter_, Splitter(limit), b"", []

    async def send(self, *portions):
        for portion in portions:
            for event in self.splitter.feed(portion):
                self.got += await self.filter.feed(event)
                self.after.append(self.got)
        return self

    async def end(self):
        left = self.splitter.rest()
        self.got += (await self.filter.feed(left) if left else b"") + self.filter.end()
        return self.got


def filter_of(wire, bench, **sizes):
    made = {"chat": ChatFilter, "messages": MessagesFilter}[wire]
    return made(bench, **(SIZES | sizes))


def through(wire, bench, stream, cuts=()):
    """`stream`, cut at the byte positions `cuts`, through a new filter."""
    places = [0, *sorted(cuts), len(stream)]
    portions = [stream[a:b] for a, b in pairwise(places)]

    async def run():
        client = Client(filter_of(wire, bench))
        await client.send(*portions)
        return await client.end()

    return asyncio.run(run())


# --- whole answers and their records --------------------------------------------------------------


CALL = {"type": "function", "id": "id0", "function": {"name": "bash", "arguments": '{"c": "qqq"}'}}
TOOL_USE = {"type": "tool_use", "id": "id0", "name": "bash", "input": {"c": "qqq"}}


def completion(*calls, text=None):
    message = {"role": "assistant", "content": text, "tool_calls": list(calls)}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": {"x": 1}}


def message(*blocks):
    return {"type": "message", "role": "assistant", "content": list(blocks)} | {
        "stop_reason": "tool_use",
        "usage": {"output_tokens": 1, "server_tool_use": {"web_search_requests": 0}},
    }


def with_arguments(arguments):
    return CALL | {"function": {"name": "bash", "arguments": arguments}}


def entries(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


class Deny:
    """Blocks every call with `bad` in its arguments."""

    def judge(self, call):
        bad = "bad" in call.arguments
        return Verdict(Decision.BLOCK if bad else Decision.ALLOW, "no-bad", "bad is not allowed")


# --- OpenAI ---------------------------------------------------------------------------------------


def chunk(delta=None, finish=None, choice=0, **more):
    one = {"index": choice, "delta": delta or {}, "finish_reason": finish}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    return head | {"choices": [one]} | more


def part(index, name=None, arguments=None, call_id=None):
    function = {}
    if name is not None:
        function["name"] = name
    if arguments is not None:
        function["arguments"] = arguments
    made = {"index": index, "function": function}
    return made | ({"id": call_id, "type": "function"} if call_id else {})


def data(value, ascii_=True, end="\n"):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=ascii_)
    return f"data: {text}{end}{end}".encode()


USAGE = chunk() | {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}}


def chat_stream(texts, calls, order, *, dump=data):
    """`calls`: lists of argument pieces; `order`: which call each next piece comes from."""
    out = [dump(chunk({"role": "assistant", "content": ""}))]
    out += [dump(chunk({"content": text})) for text in texts]
    left = {k: list(pieces) for k, pieces in enumerate(calls)}
    opened = set()
    for k in order:
        first = k not in opened
        opened.add(k)
        piece = "" if first else left[k].pop(0)
        named = (f"tool{k}", "", f"id{k}") if first else (None, piece, None)
        out.append(dump(chunk({"tool_calls": [part(k, *named)]})))
    out.append(dump(chunk(finish="tool_calls" if calls else "stop")))
    return b"".join([*out, dump(USAGE), b"data: [DONE]\n\n"])


def read_chat(stream):
    """Text, calls by index as (name, arguments), finish reasons: as a client of the wire reads."""
    text, calls, finishes = "", {}, []
    for event in Splitter(1 << 24).feed(stream):
        if not event.data or event.data == "[DONE]":
            continue
        for choice in json.loads(event.data).get("choices", ()):
            delta = choice["delta"]
            text += delta.get("content") or ""
            for one in delta.get("tool_calls") or ():
                known = calls.setdefault(one["index"], ["", ""])
                known[0] += one["function"].get("name") or ""
                known[1] += one["function"].get("arguments") or ""
            finishes += [choice["finish_reason"]] if choice["finish_reason"] else []
    return text, {k: tuple(v) for k, v in calls.items()}, finishes


# --- Anthropic ------------------------------------------------------------------------------------


def named(kind, ascii_=True, end="\n", **values):
    body = json.dumps({"type": kind} | values, ensure_ascii=ascii_)
    return f"event: {kind}{end}data: {body}{end}{end}".encode()


def messages_stream(texts, calls, order, *, ascii_=True, end="\n"):
    """A text block for each text, then a block for each call, their deltas in `order`."""

    def write(kind, **values):
        return named(kind, ascii_, end, **values)

    message = {"id": "m1", "type": "message", "role": "assistant", "content": [], "usage": {}}
    out = [write("message_start", message=message), write("ping")]
    for i, text in enumerate(texts):
        out.append(write("content_block_start", index=i, content_block=TEXT))
        out.append(
            write("content_block_delta", index=i, delta={"type": "text_delta", "text": text})
        )
        out.append(write("content_block_stop", index=i))
    base, left, opened = len(texts), {k: list(pieces) for k, pieces in enumerate(calls)}, set()
    for k in order:
        if k not in opened:
            opened.add(k)
            block = {"type": "tool_use", "id": f"id{k}", "name": f"tool{k}", "input": {}}
            out.append(write("content_block_start", index=base + k, content_block=block))
        else:
            delta = {"type": "input_json_delta", "partial_json": left[k].pop(0)}
            out.append(write("content_block_delta", index=base + k, delta=delta))
        if not left[k]:
            out.append(write("content_block_stop", index=base + k))
    delta = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    out.append(write("message_delta", delta=delta, usage={"output_tokens": 9}))
    return b"".join([*out, write("message_stop")])


TEXT = {"type": "text", "text": ""}


def read_messages(stream):
    """Text, calls by index as (name, arguments), stop reasons."""
    text, calls, reasons = "", {}, []
    for event in Splitter(1 << 24).feed(stream):
        value = json.loads(event.data)
        match value["type"]:
            case "content_block_start" if value["content_block"]["type"] == "tool_use":
                calls[value["index"]] = (value["content_block"]["name"], "")
            case "content_block_delta":
                delta = value["delta"]
                text += delta.get("text", "")
                if "partial_json" in delta:
                    name, before = calls[value["index"]]
                    calls[value["index"]] = name, before + delta["partial_json"]
            case "message_delta":
                reasons.append(value["delta"]["stop_reason"])
    return text, calls, reasons
