"""Three records of one session's tool calls, compared: the gateway's, the audit log's, the agent's.

The gateway records a call when it is judged, the log has a line for it, and the agent writes down
what it runs. A call that the agent ran and the log doesn't know went past the guard.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from harness_adapters.guard.effects.tools import tool_named
from harness_adapters.harness import AgentCall
from harness_adapters.records import Decision, ToolCall, Turn
from harness_adapters.text import visible

_SHOWN = 80
"""Characters of what a session wrote, in a line for people."""


def disagreement(
    turns: Sequence[Turn],
    entries: Sequence[Mapping[str, Any]],
    record: Sequence[AgentCall] | None,
) -> str:
    """The first thing in which the records differ, as one line; empty when they agree.

    `entries` are the session's lines of the audit log, `record` what the agent took up (None: not
    known). A call of the last turn may be missing there, and one beside a call that nobody can
    read: the agent may not have come to it.
    """
    calls = {call.id: call for turn in turns for call in turn.calls}
    differs = _log(calls, entries)
    if differs or record is None:
        return differs
    return _agent(calls, record) or _lost(turns, record)


def _log(calls: Mapping[str, ToolCall], entries: Sequence[Mapping[str, Any]]) -> str:
    logged = Counter(str(entry.get("call")) for entry in entries)
    for call_id, count in logged.items():
        if count > 1:
            return f"the audit log has call {_shown(call_id)} {count} times"
    for entry in entries:
        call = calls.get(str(entry.get("call")))
        if call is None:
            return f"the audit log has call {_shown(entry.get('call'))}, the session has not"
        if entry.get("arguments_sha256") != _sha256(call.arguments):
            return f"the audit log has other arguments for call {call.id}"
    missing = next((call_id for call_id in calls if call_id not in logged), None)
    return f"the audit log lacks call {missing}" if missing else ""


def _agent(calls: Mapping[str, ToolCall], record: Sequence[AgentCall]) -> str:
    seen: set[str] = set()
    for ran in record:
        call, shown = calls.get(ran.id), f"{_shown(ran.name)} ({_shown(ran.id)})"
        if call is None:
            return f"the agent has a call that was never judged: {shown}"
        if call.verdict.decision is Decision.BLOCK:
            return f"the agent has a call that was blocked: {shown}"
        if ran.id in seen:
            return f"the agent has a call twice that was judged once: {shown}"
        seen.add(ran.id)
        if not ran.name:
            continue
        if not _same_tool(ran.name, call.name):
            return f"the agent has {shown} where {_shown(call.name)} was judged"
        if not call.malformed and _value(ran.arguments) != _value(call.arguments):
            return f"the agent has other arguments than were judged: {shown}"
    return ""


def _lost(turns: Sequence[Turn], record: Sequence[AgentCall]) -> str:
    """A record that lacks what must have run, since the session went on, was changed."""
    known = {ran.id for ran in record}
    for turn in turns[:-1]:
        if any(call.malformed or not call.name for call in turn.calls):
            continue
        for call in turn.calls:
            if call.verdict.decision is not Decision.BLOCK and call.id not in known:
                return f"the agent's own record lacks call {call.id}, which it was given"
    return ""


def _same_tool(one: str, other: str) -> bool:
    """Agents mend misspelt names, and the guard takes a call for what it would be mended to."""
    return one.casefold() == other.casefold() or tool_named(one) is tool_named(other)


def _value(arguments: object) -> object:
    """Arguments as a JSON value; no arguments are an empty object."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _shown(value: object) -> str:
    return visible(str(value), one_line=True)[:_SHOWN]
