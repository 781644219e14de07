"""mini-swe-agent: `.traj.json` of versions 1 (a list of messages) and 2 (with `info`).

Version 1 calls stand in the text, one fenced command per answer, and the next user message is the
result; later versions use tool calls, and may keep answers as Responses objects.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record, chat
from harness_adapters.synthesis.traces.formats.items import Items
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker

_COMMAND = re.compile(r"```(?:mswea_bash_command|bash|sh)[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)
_OBSERVED = ("<returncode>", "Observation:")


class MiniSweAgent:
    """Reads trajectories of mini-swe-agent."""

    name = "mini_swe_agent"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Its format name or version, or its command fence and return codes in messages."""
        for record in head:
            info = values.mapping(record.get("info"))
            form = values.text(record.get("trajectory_format"))
            if form.startswith("mini-swe-agent") or "mini_version" in info:
                return True
            messages = record.get("messages")
            texts = (values.content(m.get("content"))[0] for m in values.mappings(messages))
            if any(t.startswith("<returncode>") or "```mswea_bash_command" in t for t in texts):
                return True
        return False

    def feed(self, record: Record) -> None:
        """Read one trajectory."""
        if not isinstance(record.get("messages"), list):
            self._out.notes["records_beside_the_conversation"] += 1
            return
        draft = self._out.whole(chat.identity_of(record))
        chat.describe(draft, record)
        info = values.mapping(record.get("info"))
        draft.facts(agent="mini_swe_agent", agent_version=values.text(info.get("mini_version")))
        for key in ("exit_status", "submission"):
            if isinstance(info.get(key), str):
                draft.meta[key] = info[key]
        items = Items(draft)
        waiting = ""
        for index, message in enumerate(values.mappings(record["messages"])):
            waiting = self._message(draft, items, message, index, waiting)
        self._out.close(draft.id)

    def _message(
        self, draft: Draft, items: Items, message: Record, index: int, waiting: str
    ) -> str:
        """Read one message; returns the id of the call whose result the next one holds."""
        if isinstance(message.get("output"), list):
            items.feed(values.mappings(message["output"]))
            return ""
        if values.text(message.get("type")).endswith("_call_output"):
            items.feed([message])
            return ""
        role = chat.role_of(message)
        text, images = values.content(message.get("content"))
        if role == "user" and waiting:
            extra = values.mapping(message.get("extra"))
            code = values.integer(extra.get("returncode"))
            code = exit_codes.stated(text) if code is None else code
            draft.result(Result(text=text, call_id=waiting, exit_code=code, images=images))
            return ""
        if role == "exit":
            draft.said(Speaker.HARNESS, text)
            return ""
        chat.read_message(draft, message)
        if role == "assistant" and not message.get("tool_calls"):
            found = _COMMAND.findall(text)
            if len(found) == 1:
                identity = f"message-{index}"
                draft.call(make_call(identity, "bash", {"command": found[0].strip("\r\n")}))
                return identity
        return ""

    def finish(self) -> None:
        """Nothing is held back."""
