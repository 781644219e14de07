"""A small chat format, sessions and listeners for tests."""

import json
import re
import socket
from collections.abc import Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import ParsedCall, ParsedReply
from harness_adapters.gateway import Gateway, SessionSpec, Tape
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policies import AllowAll

END = 0x110000
"""Past the last code point."""

USER = {"role": "user", "content": "hi"}

BUDGET = BudgetSettings(max_turns=8, max_tokens_per_turn=4000, max_session_tokens=200_000)

TOOLS = [
    {
        "type": "function",
        "function": {"name": "bash", "description": "", "parameters": {"type": "object"}},
    }
]


class CharacterChat:
    """One token per character; calls are fenced JSON blocks."""

    end_ids = (END,)

    def render(self, messages, tools):
        for message in messages:
            if message["content"] == "refuse me":
                raise ValueError("this template refuses")
        return self.encode(json.dumps([tools, messages], ensure_ascii=False) + "\nassistant:")

    def parse(self, text):
        text = text.removesuffix("<end>")
        calls = []
        for block in re.findall(r"```json\n(.*?)\n```", text, re.DOTALL):
            try:
                value = json.loads(block)
                arguments = value["arguments"]
                assert isinstance(arguments, dict)
                calls.append(ParsedCall(value["name"], json.dumps(arguments, ensure_ascii=False)))
            except (ValueError, KeyError, TypeError, AssertionError):
                name = re.search(r'"name": "(\w+)"', block)
                rest = block.partition('"arguments": ')[2] or block
                calls.append(ParsedCall(name[1] if name else "", rest, malformed=True))
        return ParsedReply(re.sub(r"```json\n.*?\n```", "", text, flags=re.DOTALL).strip(), calls)

    def write_call(self, name, arguments):
        return f'```json\n{{"name": "{name}", "arguments": {arguments}}}\n```'

    def encode(self, text):
        return [ord(c) for c in text]

    def decode(self, ids):
        return "".join("<end>" if i == END else chr(i) for i in ids)


def call(name, **arguments):
    return CharacterChat().write_call(name, json.dumps(arguments))


def spec(session="s1", **changes):
    values = {
        "session": session,
        "task": "task-1",
        "harness": "pi",
        "workdir": "/app",
        "adapter": "pi-v3",
        "version": 3,
        "temperature": 0.7,
        "budget": BUDGET,
        "seed": 5,
    }
    return SessionSpec(**(values | changes))


def make_gateway(
    tmp_path: Path, replies: dict[str, Iterable], *, policy=None, engine=None, **options
) -> Gateway:
    chat = CharacterChat()
    engine = engine or ScriptedEngine(chat, max_context=options.pop("max_context", 300_000))
    for session, script in replies.items():
        engine.script(session, script)
    audit = AuditLog(tmp_path / "audit.jsonl")
    return Gateway(engine, chat, policy or AllowAll(), audit, **options)


def listening() -> socket.socket:
    sock = socket.create_server(("127.0.0.1", 0))
    sock.setblocking(False)
    return sock


@asynccontextmanager
async def client(gateway: Gateway, tape: Tape):
    """An HTTP client of one session's listener."""
    sock = listening()
    port = sock.getsockname()[1]
    stop = await gateway.serve(tape, sock)
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:
            yield http
    finally:
        await stop()


def body(*messages, stream=False, tools=TOOLS, **more):
    if not messages:
        messages = ({"role": "user", "content": "hi"},)
    return (
        {"model": "anything", "messages": list(messages), "stream": stream}
        | ({"tools": tools} if tools else {})
        | more
    )


async def ask(http, *messages, **more):
    answer = await http.post("/v1/chat/completions", json=body(*messages, **more))
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]


class Recording(ScriptedEngine):
    """Remembers how it was asked."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.asked = []

    async def generate(self, prompt_ids, *, adapter="base", sampling, session=""):
        self.asked.append((adapter, sampling, session))
        return await super().generate(
            prompt_ids, adapter=adapter, sampling=sampling, session=session
        )
