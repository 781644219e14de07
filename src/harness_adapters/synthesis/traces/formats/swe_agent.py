"""SWE-agent: `.traj` files of versions 0 and 1.

`trajectory` holds one step per turn with the action as text; `history` the messages, and in
function-calling runs the calls. The format has no exit codes.
"""

from __future__ import annotations

import shlex
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record, chat
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker, ToolKind
from harness_adapters.synthesis.traces.tools import kind_of

_COMMANDS = {"open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "undo_edit"}
_COMMANDS |= {"search_dir", "search_file", "find_file", "submit", "str_replace_editor", "exit_cost"}
_COMMANDS |= {"filemap", "exit_context", "exit_format", "exit_forfeit", "exit_error"}


class SweAgent:
    """Reads trajectories of SWE-agent."""

    name = "swe_agent"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Steps with an action and its observation."""
        return any(
            any(
                "action" in step
                and "observation" in step
                and ("thought" in step or "response" in step)
                for step in list(values.mappings(values.embedded(record.get("trajectory"))))[:3]
            )
            or (
                record.get("trajectory") == []
                and isinstance(record.get("history"), list)
                and "info" in record
            )
            for record in head
        )

    def feed(self, record: Record) -> None:
        """Read one trajectory."""
        steps = values.embedded(record.get("trajectory"))
        if not isinstance(steps, list):
            self._out.notes["records_beside_the_conversation"] += 1
            return
        draft = self._out.whole(chat.identity_of(record))
        chat.describe(draft, record)
        info = values.mapping(record.get("info"))
        draft.facts(agent="swe_agent", agent_version=values.text(info.get("swe_agent_version")))
        for key in ("exit_status", "submission"):
            if isinstance(info.get(key), str):
                draft.meta[key] = info[key]
        calls = self._history(draft, list(values.mappings(record.get("history"))))
        for index, step in enumerate(values.mappings(steps)):
            self._step(draft, step, index, calls)
        self._out.close(draft.id)

    def finish(self) -> None:
        """Nothing is held back."""

    def _history(self, draft: Draft, history: list[Record]) -> dict[str, deque[list[Any]]]:
        """What was said before the first step, and the calls of each action."""
        calls: dict[str, deque[list[Any]]] = defaultdict(deque)
        opening = True
        for message in history:
            draft.note("demonstrations", message.get("is_demo") is True)
            if message.get("is_demo") or not isinstance(message.get("role"), str):
                continue
            if message["role"] == "assistant":
                opening = False
                requested = values.sequence(message.get("tool_calls"))
                if requested:
                    calls[values.text(message.get("action"))].append(requested)
            elif opening:
                text, images = values.content(message.get("content"))
                speaker = Speaker.USER if message["role"] == "user" else Speaker.HARNESS
                draft.said(speaker, text, images=images)
        return calls

    def _step(
        self, draft: Draft, step: Record, index: int, calls: dict[str, deque[list[Any]]]
    ) -> None:
        action = values.text(step.get("action"))
        text = values.text(step.get("response")) or values.text(step.get("thought"))
        state = values.embedded(step.get("state"))
        cwd = values.text(values.mapping(state).get("working_dir")) or None
        draft.answer(text=text, reasoning=values.text(step.get("thought")))
        draft.facts(cwd=cwd)
        if not action.strip():
            draft.note("turns_without_action")
            return
        requested = calls[action].popleft() if calls.get(action) else []
        ids = []
        for call in values.mappings(requested):
            function = values.mapping(call.get("function"))
            ids.append(values.text(call.get("id")) or f"step-{index}")
            name = values.text(function.get("name"))
            draft.call(make_call(ids[-1], name, function.get("arguments"), cwd=cwd))
        if not ids:
            ids = [f"step-{index}"]
            name, arguments = _parse(action)
            draft.call(make_call(ids[0], name, arguments, cwd=cwd))
        observation = values.text(step.get("observation"))
        draft.result(Result(text=observation, call_id=ids[0]))


def _parse(action: str) -> tuple[str, Record]:
    """Name and arguments of an action in text: a command of SWE-agent, else a shell command."""
    words = action.split(maxsplit=1)
    name = words[0] if words else ""
    if name not in _COMMANDS:
        return "bash", {"command": action}
    if name == "str_replace_editor":
        try:
            parts = shlex.split(action)[1:]
        except ValueError:
            return name, {"input": action}
        found: Record = dict(zip(("command", "path"), parts, strict=False))
        options = parts[2:]
        for flag, value in zip(options[::2], options[1::2], strict=False):
            found[flag.lstrip("-")] = value
        return name, found
    rest = words[1] if len(words) > 1 else ""
    key = "path" if kind_of(name) is ToolKind.READ or name == "create" else "input"
    return name, {key: rest.strip()}
