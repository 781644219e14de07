"""The first request of a harness as it is really sent: its system prompt and its tools.

An adapter belongs to this prompt: another version or profile of the same harness is another one.
Made by playing a session of the real program in a real sandbox, on a model that says one word.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import BASE, ChatFormat, ParsedReply
from harness_adapters.errors import HarnessError
from harness_adapters.gateway.scripted import FINAL_TEXT, ScriptedEngine
from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policies import AllowAll
from harness_adapters.harness import Harness, Profile
from harness_adapters.records import Message, ToolSchema
from harness_adapters.rollout.session import BASE_URL, PORT
from harness_adapters.sandbox import BwrapSandbox

PROMPT = "Say done."
WORKDIR = "/app"

_SECONDS = 180.0
_CONTEXT = 1 << 20
"""Far more than any prompt has bytes: nothing may be refused or cut."""


@dataclass(frozen=True, slots=True)
class Opening:
    """What every session of a harness and profile starts with."""

    messages: list[Message]
    """All that precede the user's."""
    tools: list[ToolSchema]

    @property
    def text(self) -> str:
        """Both as JSON, in the order in which they were sent."""
        return json.dumps([self.messages, self.tools], ensure_ascii=False)

    @property
    def sha256(self) -> str:
        """Of `text` in UTF-8; it changes with the date where the prompt holds one."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def tokens(self, chat: ChatFormat) -> int:
        """Of the prompt that a model of this format gets, with an empty message of the user."""
        return len(chat.render([*self.messages, {"role": "user", "content": ""}], self.tools))


async def play_opening(harness: Harness, profile: Profile) -> Opening:
    """Play one session. Raises HarnessError, also when no request came, and SandboxError."""
    chat = _Listening()
    engine = ScriptedEngine(chat, max_context=_CONTEXT)
    engine.script("opening", [FINAL_TEXT])
    launch = harness.launch(PROMPT, base_url=BASE_URL, profile=profile, max_context=_CONTEXT)
    with tempfile.TemporaryDirectory(prefix="harness-adapters-") as place:
        lower = Path(place, "files")
        lower.mkdir()
        audit = AuditLog(Path(place, "audit.jsonl"), home=Path(place, "heads"))
        gateway = Gateway(engine, chat, AllowAll(), audit)
        tape = gateway.open(_spec(harness))
        sandbox = BwrapSandbox([lower], WORKDIR, home_files=launch.home_files, binds=launch.binds)
        async with sandbox as box:
            result = await box.exec(
                launch.argv,
                env=launch.env,
                timeout=_SECONDS,
                stdin=launch.stdin,
                serve=partial(gateway.serve, tape),
                port=PORT,
            )
    if not chat.openings:
        _, why = harness.end(result, model_calls=0)
        raise HarnessError(f"{harness.name} {harness.version} asked the model nothing: {why}")
    return chat.openings[0]


def _spec(harness: Harness) -> SessionSpec:
    budget = BudgetSettings(
        max_turns=1,
        max_tokens_per_turn=100,
        max_session_tokens=_CONTEXT,
        wall_seconds=_SECONDS,
    )
    return SessionSpec(
        session="opening",
        task="opening",
        harness=harness.name,
        workdir=WORKDIR,
        adapter=BASE,
        version=0,
        temperature=1.0,
        budget=budget,
    )


@dataclass
class _Listening:
    """A chat format that writes down what it is asked to render; one token is one byte."""

    openings: list[Opening] = field(default_factory=list[Opening])
    end_ids: list[int] = field(default_factory=lambda: [0])

    def render(self, messages: list[Message], tools: list[ToolSchema]) -> list[int]:
        before = [message for message in messages if message["role"] == "system"]
        self.openings.append(Opening(before, tools))
        return self.encode(PROMPT)

    def parse(self, text: str) -> ParsedReply:
        return ParsedReply(text.removesuffix("\0"), [])

    def write_call(self, name: str, arguments: str) -> str:
        return f"{name} {arguments}"

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode(errors="replace")
