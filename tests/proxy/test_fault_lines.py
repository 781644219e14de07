"""Each way in which a guard may fail, through a real proxy with the shipped rules.

`docs/guard.md` lists them. In none does a call reach the agent: there is a notice, an error, or no
answer at all. The first test shows that a harmless call does.
"""

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from contextlib import asynccontextmanager

import httpx
import pytest

from harness_adapters.guard import workers
from harness_adapters.guard.effects.shell import parsing
from harness_adapters.guard.policy import EffectPolicy, TaskRules, default_policy
from harness_adapters.proxy.relay import Limits
from harness_adapters.records import Decision

from .servers import JSON, SSE, Upstream, proxied
from .support import (
    CALL,
    TOOL_USE,
    chat_stream,
    completion,
    entries,
    message,
    messages_stream,
)

MARK = "qqq"
"""In every call: not one letter of it may arrive."""
WIRES = pytest.mark.parametrize("wire", ["chat", "messages"])
FORMS = pytest.mark.parametrize("form", ["stream", "whole"])
PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages"}


def answer_with(wire, form, arguments, name="tool0"):
    """What an upstream says: a text and one call, `arguments` as JSON text."""
    if form == "stream":
        write = {"chat": chat_stream, "messages": messages_stream}[wire]
        made = write(["hello"], [[arguments[:40], arguments[40:]]], [0, 0, 0])
        return made.replace(b'"tool0"', json.dumps(name).encode())
    if wire == "chat":
        call = CALL | {"function": {"name": name, "arguments": arguments}}
        return json.dumps(completion(call, text="hello")).encode()
    return json.dumps(message(TOOL_USE | {"name": name, "input": json.loads(arguments)})).encode()


def bash(command):
    return json.dumps({"command": command})


def shipped(**changes):
    task = TaskRules(workdir="/app")
    return EffectPolicy(default_policy().model_copy(update=changes), task=task)


async def ask(log, wire, form, arguments, *, name="bash", policy=None, **options):
    body = answer_with(wire, form, arguments, name)
    async with (
        Upstream(SSE if form == "stream" else JSON, body) as upstream,
        proxied(upstream, log, policy or shipped(), workdir="/app", **options) as http,
    ):
        return body, await http.post(PATHS[wire])


def was_replaced(answer):
    """A notice instead of the call."""
    assert MARK.encode() not in answer.content
    assert not any(word in answer.content for word in (b"tool_calls", b'"tool_use"'))
    return answer.status_code == 200 and b"was blocked and not run" in answer.content


@WIRES
@FORMS
async def test_what_is_harmless_passes_byte_for_byte(log, wire, form):
    body, answer = await ask(log, wire, form, bash(f"ls {MARK}"))
    assert answer.content == body
    assert [entry["decision"] for entry in entries(log)] == ["allow"]


@WIRES
@FORMS
@pytest.mark.parametrize("command", [f"echo '{MARK}", f"if {MARK}; then", f"cat <({MARK}"])
async def test_a_syntax_error(log, wire, form, command):
    _, answer = await ask(log, wire, form, bash(command))
    assert was_replaced(answer)


@WIRES
async def test_a_parser_that_breaks(log, wire, monkeypatch):
    def broken(*_):
        raise MemoryError("tree-sitter")

    monkeypatch.setattr(parsing, "_tree", broken)
    _, answer = await ask(log, wire, "stream", bash(f"ls {MARK}"))
    assert was_replaced(answer)
    assert entries(log)[0]["rule"] in ("guard-error", "unresolved")


@WIRES
@FORMS
async def test_a_timeout(log, wire, form):
    class Slow:
        def judge(self, call):
            threading.Event().wait(30)
            return shipped().judge(call)

    _, answer = await ask(log, wire, form, bash(f"ls {MARK}"), policy=Slow(), seconds=0.2)
    assert was_replaced(answer)
    assert entries(log)[0]["rule"] == "guard-timeout"


@WIRES
@FORMS
@pytest.mark.parametrize(
    ("rule", "options"),
    [
        ("guard-oversize", {"limits": Limits(max_call=5000)}),
        ("oversize", {"policy": shipped(max_bytes=5000)}),
    ],
    ids=["the proxy's limit", "the policy's limit"],
)
async def test_an_oversize_call(log, wire, form, rule, options):
    _, answer = await ask(log, wire, form, bash(f"ls {MARK * 3000}"), **options)
    assert was_replaced(answer)
    assert entries(log)[0]["rule"] == rule


@WIRES
@pytest.mark.parametrize(
    "arguments", [f'{{"command": "ls {MARK}', f'["{MARK}"]', MARK, f'{{"command": {MARK}}}', ""]
)
async def test_bad_json_as_arguments(log, wire, arguments):
    _, answer = await ask(log, wire, "stream", arguments)
    assert was_replaced(answer)
    # None at all is an empty object to agents: then what the call lacks is what blocks it.
    assert entries(log)[0]["rule"] == ("malformed" if arguments else "unresolved")


@WIRES
@pytest.mark.parametrize("body", [b'data: {"' + MARK.encode(), b"{" + MARK.encode()])
async def test_bad_json_as_an_answer(log, wire, body):
    kind = SSE if body.startswith(b"data") else JSON
    async with (
        Upstream(kind, body) as upstream,
        proxied(upstream, log, shipped()) as http,
    ):
        answer = await http.post(PATHS[wire])
    assert (answer.status_code, MARK in answer.text) == (502, False)


@WIRES
@FORMS
async def test_an_unknown_tool_of_unknown_shape(log, wire, form):
    arguments = json.dumps({"payload": {"how": [MARK, {"x": "rm -rf /"}]}})
    _, answer = await ask(log, wire, form, arguments, name="teleport")
    assert was_replaced(answer)


@WIRES
async def test_a_guard_whose_threads_cant_start(log, wire, monkeypatch):
    def none_left(*_, **__):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "_idle", [])
    monkeypatch.setattr(workers.threading, "Thread", none_left)
    # Short calls are judged without one.
    _, answer = await ask(log, wire, "whole", bash(f"ls {MARK * 1000}"))
    assert (answer.status_code, MARK in answer.text) == (500, False)


@WIRES
@FORMS
@pytest.mark.parametrize("last", ["cat /tests/test_all.py", "ls"])
async def test_ten_thousand_commands_are_all_judged(log, wire, form, last):
    command = f"true {MARK}; " * 10_000 + last
    body, answer = await ask(log, wire, form, bash(command), seconds=60)
    [entry] = entries(log)
    if last == "ls":
        assert (entry["decision"], answer.content == body) == ("allow", True)
    else:
        assert was_replaced(answer)
        assert entry["rule"] == "hidden-tests"


# --- a proxy that is a process of its own -------------------------------------------------------


@asynccontextmanager
async def served(upstream, tmp_path, *, limit=None):
    """`guard serve` as users start it; with `limit`, no file of its may grow beyond that."""

    def full_disk():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    command = "from harness_adapters.cli.main import main; main()"
    words = ["guard", "serve", "--upstream", upstream.url, "--workdir", "/app"]
    process = await asyncio.to_thread(
        subprocess.Popen,
        [sys.executable, "-c", command, *words, "--log", str(tmp_path / "audit.jsonl")],
        env={**os.environ, "HARNESS_ADAPTERS_HOME": str(tmp_path / "home")},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=full_disk,
    )
    try:
        address = (await asyncio.to_thread(process.stdout.readline)).strip()
        async with httpx.AsyncClient(base_url=address, timeout=60) as http:
            yield process, http
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@WIRES
async def test_a_dead_guard_is_no_answer(tmp_path, wire):
    """Killed while a call waits for the rest of itself: what came of the text is all there is."""
    stream = answer_with(wire, "stream", bash(f"ls {MARK}"), "bash")
    middle = stream.index(MARK.encode()) + 1
    more = asyncio.Event()
    async with (
        Upstream(SSE, [stream[:middle], more, stream[middle:]]) as upstream,
        served(upstream, tmp_path) as (process, http),
    ):
        got = b""
        with pytest.raises(httpx.HTTPError):
            async with http.stream("POST", PATHS[wire]) as answer:
                async for data in answer.aiter_raw():
                    got += data
                    if b"hello" in got and process.poll() is None:
                        process.send_signal(signal.SIGKILL)
                        await asyncio.to_thread(process.wait)
                        more.set()
        assert b"hello" in got
        assert not any(word in got for word in (b"bash", b"id0", b"ls "))
        with pytest.raises(httpx.HTTPError):
            await http.post(PATHS[wire])
    assert len(upstream.requests) == 1


@WIRES
async def test_a_full_disk_is_an_error_for_every_further_call(tmp_path, wire):
    """The kernel refuses to let the log grow (RLIMIT_FSIZE), as a full file system would."""
    body = answer_with(wire, "whole", bash(f"ls {MARK}"), "bash")
    async with (
        Upstream(JSON, body) as upstream,
        served(upstream, tmp_path, limit=2000) as (_, http),
    ):
        answers = [await http.post(PATHS[wire]) for _ in range(8)]
    passed = [answer for answer in answers if answer.content == body]
    failed = answers[len(passed) :]
    assert 1 <= len(passed) < len(answers)
    assert all(answer.status_code == 500 and MARK not in answer.text for answer in failed)
    assert all("audit log" in answer.text for answer in failed)
    logged = (tmp_path / "audit.jsonl").read_bytes()[:2000].split(b"\n")[:-1]
    assert [json.loads(line)["decision"] for line in logged] == [Decision.ALLOW] * len(passed)
