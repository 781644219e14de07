"""From a request to an answer: budgets, the engine, the guard, the tape."""

from __future__ import annotations

import socket
import time
from collections.abc import Awaitable, Callable

from harness_adapters.engine import (
    ChatFormat,
    Completion,
    Engine,
    ParsedCall,
    ParsedReply,
    Sampling,
)
from harness_adapters.errors import ContextError, EngineError
from harness_adapters.gateway.answers import ended, joined, ready, shown
from harness_adapters.gateway.listener import Listener
from harness_adapters.gateway.retry import Asked, after_block
from harness_adapters.gateway.tape import SessionSpec, Tape
from harness_adapters.gateway.wire import (
    Answer,
    BadRequest,
    ChatRequest,
    new_messages,
    normalise_messages,
    normalise_tools,
)
from harness_adapters.guard import Policy, ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.judging import judge, one_line
from harness_adapters.records import (
    Message,
    SessionEnd,
    ToolCall,
    ToolSchema,
    Turn,
)

AUXILIARY_TEXT = "Task"
"""Answer to requests without tools; agents use it as a title or a summary."""

MAX_COUNTS = 100
"""Token counts per session: each costs as much as rendering a prompt, and no budget ends them."""


class Gateway:
    """Answers agents with what one engine samples; shared by all sessions of a process."""

    def __init__(
        self,
        engine: Engine,
        chat: ChatFormat,
        policy: Policy,
        audit: AuditLog,
        *,
        enforced: bool = True,
        retries: int = 0,
        keepalive_seconds: float = 5.0,
    ) -> None:
        """With `enforced=False` verdicts only go on record and every call passes.

        A turn of which the guard leaves no call is told so and sampled again, within the same
        request, at most `retries` times.
        """
        self.engine = engine
        self.chat = chat
        self.policy = policy
        self.audit = audit
        self.enforced = enforced
        self.retries = retries
        self._listener = Listener(self._reply_to, self._count, keepalive_seconds)

    def open(self, spec: SessionSpec) -> Tape:
        """Start the record of a session."""
        return Tape(spec)

    async def serve(self, tape: Tape, sock: socket.socket) -> Callable[[], Awaitable[None]]:
        """Answer what connects to `sock` as this session; returns the function that stops it.

        `functools.partial(gateway.serve, tape)` is a `sandbox.Serve`. Stopping closes the socket,
        cuts open connections and cancels their engine requests.
        """
        return await self._listener.serve(tape, sock)

    def _reply_to(self, tape: Tape, request: ChatRequest) -> Awaitable[Answer]:
        """Refuse (BadRequest) or start answering: what raises here precedes the first byte."""
        messages = normalise_messages(request.messages)
        if not request.tools:
            tape.auxiliary_calls += 1
            return ready(Answer(AUXILIARY_TEXT))
        tape.model_calls += 1
        if tape.end is not None:
            return ready(ended(tape.end))
        tools = normalise_tools(request.tools)
        try:
            prompt_ids = self._render(messages, tools, f"request {tape.model_calls}")
        except BadRequest as error:
            tape.error = str(error)
            raise
        return self._turns(tape, Asked(messages, tools, prompt_ids), request.limit)

    def _count(self, tape: Tape, request: ChatRequest) -> int:
        """Tokens of the prompt that a request would be. Raises BadRequest; records nothing."""
        tape.token_counts += 1
        if tape.token_counts > MAX_COUNTS:
            raise BadRequest(f"a session may count tokens {MAX_COUNTS} times", 429)
        messages = normalise_messages(request.messages)
        return len(self._render(messages, normalise_tools(request.tools or []), "the request"))

    def _render(self, messages: list[Message], tools: list[ToolSchema], what: str) -> list[int]:
        try:
            return self.chat.render(messages, tools)
        except Exception as error:
            # A template may refuse any sequence of messages with any exception. The sandbox can
            # send arbitrary ones, so this must not end the session as infrastructure failure.
            raise BadRequest(f"{what} can't be rendered: {one_line(error)}") from None

    async def _turns(self, tape: Tape, asked: Asked, limit: int | None) -> Answer:
        """One turn, and those that follow it because of a block, as one answer."""
        answers: list[Answer] = []
        async with tape.lock:
            for _ in range(1 + self.retries):
                said = await self._turn(tape, asked, limit)
                if said is None:
                    assert tape.end is not None  # that is why nothing was said
                    answers.append(ended(tape.end))
                    break
                turn, reply = said
                answers.append(shown(reply.content, turn))
                again = after_block(self.chat, asked, turn, reply)
                if again is None:
                    break
                asked = again
        return joined(answers)

    async def _turn(
        self, tape: Tape, asked: Asked, limit: int | None
    ) -> tuple[Turn, ParsedReply] | None:
        """Sample, judge, write down; None when the session has ended, `tape.end` says how."""
        started = time.time()
        room = self._room(tape, len(asked.prompt_ids))
        if tape.end is not None:
            return None
        sampling = Sampling(
            temperature=tape.spec.temperature,
            max_tokens=room if limit is None else min(room, limit),
            seed=_turn_seed(tape.spec.seed, len(tape.turns)),
        )
        try:
            completion = await self.engine.generate(
                asked.prompt_ids,
                adapter=tape.spec.adapter,
                sampling=sampling,
                session=tape.spec.session,
            )
            return await self._record(tape, asked, completion, started)
        except ContextError:
            tape.end = SessionEnd.CONTEXT
        except Exception as error:
            # Whatever broke between here and the sampled tokens is infrastructure: the
            # session must end at once and must never be scored.
            tape.end = SessionEnd.API_ERROR
            tape.error = one_line(error)
        return None

    def _room(self, tape: Tape, prompt_tokens: int) -> int:
        """Output tokens that this turn may have; sets `tape.end` when there are none."""
        if tape.end is not None:
            return 0
        budget = tape.spec.budget
        session_room = budget.max_session_tokens - prompt_tokens
        context_room = self.engine.max_context - prompt_tokens
        if len(tape.turns) >= budget.max_turns or session_room < 1:
            tape.end = SessionEnd.BUDGET
        elif context_room < 1:
            tape.end = SessionEnd.CONTEXT
        return min(budget.max_tokens_per_turn, session_room, context_room)

    async def _record(
        self, tape: Tape, asked: Asked, completion: Completion, started: float
    ) -> tuple[Turn, ParsedReply]:
        if len(completion.output_ids) != len(completion.logprobs):
            raise EngineError(
                f"the engine gave {len(completion.output_ids)} tokens and "
                f"{len(completion.logprobs)} log-probabilities"
            )
        text = self.chat.decode(completion.output_ids)
        reply = self.chat.parse(text)
        index = len(tape.turns)
        # One after the other: what a call leaves behind counts for the next.
        calls = [await self._judged(tape, index, k, call) for k, call in enumerate(reply.calls)]
        turn = Turn(
            index=index,
            prompt_ids=list(asked.prompt_ids),
            output_ids=list(completion.output_ids),
            logprobs=list(completion.logprobs),
            adapter=tape.spec.adapter,
            version=tape.spec.version,
            finish=completion.finish,
            text=text,
            calls=calls,
            new_messages=new_messages(tape.messages, asked.messages),
            started=started,
            seconds=completion.seconds,
            cached_tokens=completion.cached_tokens,
        )
        tape.turns.append(turn)
        tape.messages = asked.messages
        return turn, reply

    async def _judged(self, tape: Tape, turn: int, position: int, parsed: ParsedCall) -> ToolCall:
        spec = tape.spec
        proposed = ProposedCall(
            session=spec.session,
            task=spec.task,
            harness=spec.harness,
            turn=turn,
            name=parsed.name,
            arguments=parsed.arguments,
            workdir=spec.workdir,
            rules=spec.rules,
            files=spec.files,
        )
        # The same ids in every session: nothing random may enter later prompts.
        call_id = f"call_{turn}_{position}"
        verdict = await judge(self.policy, self.audit, proposed, call_id, enforced=self.enforced)
        return ToolCall(call_id, parsed.name, parsed.arguments, verdict, parsed.malformed)


def _turn_seed(seed: int | None, turn: int) -> int | None:
    """Turns of one session must not share a random stream."""
    return None if seed is None else (seed * 1_000_003 + turn) % (1 << 31)
