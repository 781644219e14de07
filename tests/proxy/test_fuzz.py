"""Streams of any make, cut anywhere: allowed ones pass as they came, blocked calls don't at all."""

import asyncio
import json
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.proxy.shapes import Unreadable

from .support import (
    DANGER,
    Client,
    WordBench,
    chat_stream,
    data,
    filter_of,
    messages_stream,
    read_chat,
    read_messages,
    through,
)

WIRES = {"chat": (chat_stream, read_chat), "messages": (messages_stream, read_messages)}
SECRET = "zqxj"
"""Stands in every call that is blocked, and nowhere else."""

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="zqxj"), max_size=12)


@st.composite
def answers(draw):
    """Texts, calls in pieces, whether each is to be blocked, and the order of their pieces."""
    texts = draw(st.lists(WORDS.filter(bool), max_size=3))
    calls, bad = [], []
    for _ in range(draw(st.integers(0, 3))):
        bad.append(draw(st.booleans()))
        command = f"{DANGER} {SECRET}" if bad[-1] else draw(WORDS)
        text = json.dumps({"command": command, "n": draw(st.integers())})
        if bad[-1] and draw(st.booleans()):
            text = text.replace("rm", "\\u0072m")
        cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)))
        places = [0, *cuts, len(text)]
        calls.append([text[a:b] for a, b in pairwise(places)])
    order = draw(st.permutations([k for k, c in enumerate(calls) for _ in range(len(c) + 1)]))
    return texts, calls, bad, order


def written(wire, texts, calls, order, ascii_, end):
    if wire == "messages":
        return messages_stream(texts, calls, order, ascii_=ascii_, end=end)
    stream = chat_stream(texts, calls, order, dump=lambda value: data(value, ascii_, end))
    return stream.replace(b"data: [DONE]\n\n", f"data: [DONE]{end}{end}".encode())


FORM = {"ascii_": st.booleans(), "end": st.sampled_from(["\n", "\r\n", "\r"])}


@pytest.mark.parametrize("wire", WIRES)
@given(answer=answers(), share=st.lists(st.floats(0, 1), max_size=8), **FORM)
@settings(max_examples=200, deadline=None)
def test_cut_anywhere(wire, answer, share, ascii_, end):
    texts, calls, bad, order = answer
    stream = written(wire, texts, calls, order, ascii_, end)
    bench = WordBench()
    got = through(wire, bench, stream, [int(s * len(stream)) for s in share])
    assert sorted(c.arguments for c in bench.seen) == sorted("".join(c) for c in calls)
    read = WIRES[wire][1]
    if not any(bad):
        assert got == stream
        return
    assert SECRET.encode() not in got
    assert not any(f"id{k}".encode() in got for k, b in enumerate(bad) if b)
    text, ran, ends = read(got)
    assert [ran[k] for k in sorted(ran)] == [
        (f"tool{k}", "".join(pieces)) for k, pieces in enumerate(calls) if not bad[k]
    ]
    if wire == "chat":
        assert got.count(b'"role"') == 1, "clients join roles as they join texts"
        assert sorted(ran) == list(range(len(ran))), "indices without gaps"
    assert (
        ends == [{"chat": "tool_calls", "messages": "tool_use"}[wire]]
        if ran
        else (ends == [{"chat": "stop", "messages": "end_turn"}[wire]])
    )
    assert "".join(texts) in text
    assert text.count("was blocked and not run") == sum(bad)
    assert b'"prompt_tokens"' in got if wire == "chat" else b'"output_tokens"' in got


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("blocked", [False, True])
def test_cut_at_every_byte(wire, blocked):
    arguments = json.dumps({"command": f"{DANGER} {SECRET}" if blocked else "ls é"})
    pieces = [arguments[:9], arguments[9:]]
    stream = written(wire, ["Hé ", "you"], [pieces, ["{}"]], [0, 1, 0, 1, 0], False, "\r\n")
    expected = through(wire, WordBench(), stream)
    assert (SECRET.encode() not in expected) if blocked else (expected == stream)
    for place in range(len(stream) + 1):
        assert through(wire, WordBench(), stream, [place]) == expected
    assert through(wire, WordBench(), stream, range(len(stream))) == expected


@pytest.mark.parametrize("wire", WIRES)
def test_text_leaves_at_once_and_a_call_not_before_its_verdict(wire):
    calls = [['{"command": "qqq"}']]
    stream = written(wire, ["first", "second"], calls, [0, 0], True, "\n")
    at_verdict = []

    async def run():
        bench = WordBench(on_judge=lambda _: at_verdict.append(client.got))
        client = Client(filter_of(wire, bench))
        sent = b""
        for event in stream.split(b"\n\n")[:-1]:
            before = client.got
            await client.send(event + b"\n\n")
            sent += event + b"\n\n"
            if b"first" in event or b"second" in event:
                assert client.got == sent, "a text waits for nothing"
            if b"qqq" in sent and not at_verdict:
                assert client.got == before
        return await client.end()

    assert asyncio.run(run()) == stream
    (before_verdict,) = at_verdict
    assert b"second" in before_verdict
    assert not any(word in before_verdict for word in (b"tool0", b"id0", b"qqq"))


@pytest.mark.parametrize("wire", WIRES)
@given(noise=st.binary(max_size=40), share=st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_noise_anywhere_lets_no_blocked_call_through(wire, noise, share):
    arguments = json.dumps({"command": f"{DANGER} {SECRET}"})
    stream = written(wire, ["a"], [[arguments]], [0, 0], True, "\n")
    place = int(share * len(stream))
    noisy = stream[:place] + noise + stream[place:]

    async def run():
        bench = WordBench()
        client = Client(filter_of(wire, bench))
        try:
            await client.send(noisy)
            await client.end()
        except Unreadable:
            pass
        return client.got, bench.seen

    got, seen = asyncio.run(run())
    assert SECRET.encode() not in got or all(DANGER not in c.arguments for c in seen)
    if SECRET.encode() in got:
        assert arguments.encode() not in got
