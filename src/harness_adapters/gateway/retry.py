"""After a block: the model is told within the same request, and says something else.

An agent takes a text without a call for the model's last word, so a notice alone would end the
session. Here the blocked calls stay in the model's context, each answered by its notice as a tool
would answer, and the model is sampled again. The agent gets the notices as text in front of what
comes of it, and runs nothing of what was blocked.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness_adapters.engine import ChatFormat, ParsedReply
from harness_adapters.guard.judging import notice
from harness_adapters.records import Conduct, Decision, Message, ToolSchema, Turn


@dataclass(frozen=True, slots=True)
class Asked:
    """What a turn is sampled from: messages and tools, and the prompt that they make."""

    messages: list[Message]
    tools: list[ToolSchema]
    prompt_ids: list[int]


def after_block(chat: ChatFormat, asked: Asked, turn: Turn, reply: ParsedReply) -> Asked | None:
    """What to sample from next, when the guard left nothing of a turn's calls; else None.

    None as well for a confirmed cheat, whose session can't score any more, and for a chat template
    that refuses a tool's answer. The next prompt is the turn's own tokens and then the notices, so
    that both turns make one row of training.
    """
    blocked = [call for call in turn.calls if call.verdict.decision is Decision.BLOCK]
    left = any(call.name and call.verdict.decision is not Decision.BLOCK for call in turn.calls)
    if not blocked or left or any(call.verdict.conduct is Conduct.CHEAT for call in blocked):
        return None
    echo: Message = {
        "role": "assistant",
        "content": reply.content,
        "tool_calls": [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in blocked
        ],
    }
    answers: list[Message] = [
        {"role": "tool", "tool_call_id": call.id, "content": notice(call.name, call.verdict)}
        for call in blocked
    ]
    messages = [*asked.messages, echo, *answers]
    try:
        rendered = chat.render(messages, asked.tools)
    except Exception:  # a template may refuse with any: then the notice is the last word
        return None
    return Asked(messages, asked.tools, _continued(rendered, turn, chat.end_ids))


def _continued(rendered: list[int], turn: Turn, end_ids: list[int]) -> list[int]:
    """The turn's own tokens, then what the template writes after an assistant's message.

    A history is never written exactly as it was sampled. Where the template's output isn't the
    same prompt with more behind it, it is taken as it is: the turn then opens a row of its own.
    """
    start = len(turn.prompt_ids)
    if rendered[:start] != turn.prompt_ids:
        return rendered
    end = next((i for i in range(start, len(rendered)) if rendered[i] in end_ids), None)
    if end is None:
        return rendered
    if turn.finish != "stop":
        return [*turn.prompt_ids, *turn.output_ids, *rendered[end:]]
    if turn.output_ids[-1:] != [rendered[end]]:
        return rendered
    return [*turn.prompt_ids, *turn.output_ids, *rendered[end + 1 :]]
