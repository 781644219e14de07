"""What an agent gets of the turns that its request led to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence

from harness_adapters.gateway.wire import Answer
from harness_adapters.guard.judging import notice
from harness_adapters.records import Decision, SessionEnd, Turn

ENDED_TEXT = {
    SessionEnd.BUDGET: "The session's budget is spent. Stopping here.",
    SessionEnd.CONTEXT: "The context is full. Stopping here.",
    SessionEnd.API_ERROR: "The model server failed. Stopping here.",
}
"""Plain, non-empty text with finish `stop` ends every known agent; an HTTP error makes it retry."""


def shown(content: str, turn: Turn) -> Answer:
    """The part of a turn that the agent gets: blocked and nameless calls become text."""
    texts, calls = [content] if content else [], []
    for call in turn.calls:
        if call.verdict.decision is Decision.BLOCK:
            texts.append(notice(call.name, call.verdict))
        elif not call.name:
            texts.append(call.arguments)
        else:
            calls.append(call)
    return Answer(
        content="\n".join(texts),
        calls=calls,
        finish=turn.finish,
        prompt_tokens=len(turn.prompt_ids),
        output_tokens=len(turn.output_ids),
        cached_tokens=turn.cached_tokens,
    )


def joined(answers: Sequence[Answer]) -> Answer:
    """Answers to one request, of which only the last may hold calls, as one.

    Its prompt is the one that was asked, its output all that was sampled.
    """
    first, last = answers[0], answers[-1]
    return Answer(
        content="\n".join(answer.content for answer in answers if answer.content),
        calls=last.calls,
        finish=last.finish,
        prompt_tokens=first.prompt_tokens,
        output_tokens=sum(answer.output_tokens for answer in answers),
        cached_tokens=first.cached_tokens,
    )


def ended(end: SessionEnd) -> Answer:
    """What stands in the place of every turn after a session's end."""
    return Answer(ENDED_TEXT[end])


def ready(answer: Answer) -> Awaitable[Answer]:
    """An answer that nobody has to wait for. Needs a running event loop."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    future.set_result(answer)
    return future
