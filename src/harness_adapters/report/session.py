"""One session as people read it: what the agent was told, and each turn with its calls' results.

The engine's record holds requests; a tool's result stands in the request *after* the call. Here
results are put back beside their calls. All text is made visible (`text.visible`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from harness_adapters.records import Decision, Message, Rollout, ToolCall, Turn
from harness_adapters.report.text import visible


@dataclass(frozen=True, slots=True)
class Said:
    """A message that the model read: `system`, `user` or a tool's answer without a call."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class CallView:
    """A tool call, the guard's verdict and what came back (None: the session ended before)."""

    name: str
    arguments: str
    """Indented where it is JSON, else as written."""
    decision: Decision
    rule: str
    reason: str
    goal: str
    malformed: bool
    result: str | None


@dataclass(frozen=True, slots=True)
class TurnView:
    """One answer of the model."""

    index: int
    read: list[Said]
    """New to the model before this turn, tool results that belong to calls left out."""
    text: str
    calls: list[CallView]
    finish: str
    prompt_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SessionView:
    """A whole session."""

    instruction: str
    system: str
    turns: list[TurnView]
    verifier: str
    error: str


def session_view(rollout: Rollout) -> SessionView:
    """Read a rollout (with its turns) into what is shown of it."""
    turns: list[TurnView] = []
    instruction, system = "", ""
    for position, turn in enumerate(rollout.turns):
        following = rollout.turns[position + 1 : position + 2]
        results, _ = _results(turn.calls, following[0].new_messages if following else [])
        earlier = rollout.turns[position - 1].calls if position else []
        _, said = _results(earlier, turn.new_messages)
        if position == 0:
            # The opening is the same in all sessions of a harness; only the task differs.
            system = "\n\n".join(s.text for s in said if s.role in ("system", "developer"))
            instruction = "\n\n".join(s.text for s in said if s.role == "user")
            said = [s for s in said if s.role not in ("system", "developer", "user")]
        turns.append(_turn(turn, said, results))
    return SessionView(
        instruction, system, turns, visible(rollout.verifier_output), visible(rollout.error)
    )


def _turn(turn: Turn, said: list[Said], results: dict[int, str]) -> TurnView:
    return TurnView(
        index=turn.index,
        read=said,
        text=visible(turn.text),
        calls=[_call(c, results.get(i)) for i, c in enumerate(turn.calls)],
        finish=turn.finish,
        prompt_tokens=len(turn.prompt_ids),
        output_tokens=len(turn.output_ids),
        seconds=turn.seconds,
    )


def _call(call: ToolCall, result: str | None) -> CallView:
    try:
        arguments = json.dumps(json.loads(call.arguments), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        arguments = call.arguments
    return CallView(
        name=visible(call.name),
        arguments=visible(arguments),
        decision=call.verdict.decision,
        rule=visible(call.verdict.rule),
        reason=visible(call.verdict.reason),
        goal=visible(call.verdict.goal),
        malformed=call.malformed,
        result=result,
    )


def _results(calls: list[ToolCall], messages: list[Message]) -> tuple[dict[int, str], list[Said]]:
    """Results by position of their call, and all that is no result; echoes are left out."""
    open_calls = dict(enumerate(calls))
    answers = [m for m in messages if m.get("role") == "tool"]
    matched: dict[int, str] = {}
    rest: list[Message] = []
    for message in answers:
        wanted = message.get("tool_call_id")
        hit = next((i for i, c in open_calls.items() if wanted and c.id == wanted), None)
        if hit is None:
            rest.append(message)
        else:
            del open_calls[hit]
            matched[hit] = _content(message)
    # Some agents rename call ids in their history; then order is all there is.
    unmatched: list[Message] = []
    for message in rest:
        if open_calls:
            hit = min(open_calls)
            del open_calls[hit]
            matched[hit] = _content(message)
        else:
            unmatched.append(message)
    said = [
        Said(visible(str(m.get("role", "?"))), _content(m))
        for m in messages
        if m.get("role") not in ("assistant", "tool") or any(m is u for u in unmatched)
    ]
    return matched, said


def _content(message: Message) -> str:
    """Text of a message; a list of parts becomes its texts, one per line."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [p.get("text", f"[{p.get('type', '?')}]") for p in content if isinstance(p, dict)]
        content = "\n".join(str(p) for p in parts)
    return visible("" if content is None else str(content))
