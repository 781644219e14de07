"""An OpenAI and Anthropic endpoint over an engine and its adapters, for people and their agents.

It is the gateway of the sessions, without what belongs to a measurement: no budget but the model's
context, requests without tools are answered by the model, the model's name chooses the adapter.
Every tool call is judged by the guard on its way out.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Mapping
from dataclasses import replace
from pathlib import Path

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import BASE, ChatFormat, Engine
from harness_adapters.gateway.retry import Asked
from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec, Tape
from harness_adapters.gateway.wire import (
    Answer,
    BadRequest,
    ChatRequest,
    normalise_messages,
    normalise_tools,
)
from harness_adapters.guard import Policy
from harness_adapters.guard.audit import AuditLog

RETRIES = 2
"""Of a model whose calls were all blocked, as in sessions by default."""

ANY = "model"
"""The name under which our drivers configure their model: the default adapter."""


class Endpoint(Gateway):
    """Answers any number of conversations; each request stands for itself."""

    def __init__(
        self,
        engine: Engine,
        chat: ChatFormat,
        policy: Policy,
        audit: AuditLog,
        *,
        adapters: Mapping[str, str],
        temperature: float,
        harness: str = "",
        workdir: Path | None = None,
    ) -> None:
        """`adapters`: name for users -> name on the engine; the first is the default."""
        super().__init__(engine, chat, policy, audit, retries=RETRIES)
        self._adapters = {**adapters, BASE: BASE}
        self._default = next(iter(adapters), BASE)
        self._temperature = temperature
        self._harness, self._workdir = harness, str(workdir or Path.cwd())
        self._requests = itertools.count()
        self._listener.models = list(self._adapters)

    def whole(self) -> Tape:
        """What `serve` takes: stands for the endpoint, records nothing."""
        return Tape(self._spec(BASE, "endpoint"))

    def _reply_to(self, tape: Tape, request: ChatRequest) -> Awaitable[Answer]:
        name = request.model if request.model not in ("", ANY) else self._default
        if name not in self._adapters:
            known = ", ".join(self._adapters)
            raise BadRequest(f"no model {name!r} here; there are {known}", 404)
        messages = normalise_messages(request.messages)
        tools = normalise_tools(request.tools or [])
        asked = Asked(messages, tools, self._render(messages, tools, "the request"))
        own = self.open(self._spec(self._adapters[name], f"request-{next(self._requests)}"))
        turn = sum(1 for message in messages if message.get("role") == "assistant")
        return self._answer(self._turns(own, asked, request.limit), own, turn)

    def _count(self, tape: Tape, request: ChatRequest) -> int:
        """No limit: who asks here is the user, not a sandbox."""
        tape.token_counts = 0
        return super()._count(tape, request)

    async def _answer(self, work: Awaitable[Answer], tape: Tape, turn: int) -> Answer:
        """Call ids that differ from turn to turn, and the same for the same history."""
        answer = await work
        if tape.error:
            answer = replace(answer, content=f"{answer.content} ({tape.error})")
        calls = [replace(c, id=f"call_{turn}_{k}") for k, c in enumerate(answer.calls)]
        return replace(answer, calls=calls)

    def _spec(self, adapter: str, session: str) -> SessionSpec:
        context = self.engine.max_context
        budget = BudgetSettings(
            max_turns=1 + RETRIES,
            max_tokens_per_turn=context,
            max_session_tokens=context,
            wall_seconds=24 * 3600,
        )
        return SessionSpec(
            session=session,
            task="",
            harness=self._harness,
            workdir=self._workdir,
            adapter=adapter,
            version=int(adapter != BASE),
            temperature=self._temperature,
            budget=budget,
        )
