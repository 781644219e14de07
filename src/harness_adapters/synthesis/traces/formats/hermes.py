"""hermes: exported sessions, its `state.db`, and the ShareGPT conversations of its batch runs.

A tool's answer is JSON text; for the terminal it holds `output` and `exit_code`.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.formats import Record, chat
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Speaker

_SESSION_KEYS = {"platform", "session_start", "api_call_count", "tool_call_count", "chat_type"}


class Hermes:
    """Reads sessions of hermes."""

    name = "hermes"

    def __init__(self, out: Recorder) -> None:
        self._out = out

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Messages beside the columns of hermes' session table, or calls in ShareGPT values."""
        for record in head:
            if isinstance(record.get("messages"), list) and _SESSION_KEYS & record.keys():
                return True
            found = values.embedded(record.get("conversations"))
            if isinstance(found, list):
                tagged = (values.text(m.get("value")) for m in values.mappings(found))
                if any("<tool_call>" in t or "<tool_response>" in t for t in tagged):
                    return True
        return False

    def feed(self, record: Record) -> None:
        """Read one session."""
        messages = chat.message_list(record)
        if not messages and "messages" not in record:
            self._out.notes["records_beside_the_conversation"] += 1
            return
        draft = self._out.whole(chat.identity_of(record))
        chat.describe(draft, record)
        config = values.mapping(values.embedded(record.get("model_config")))
        draft.facts(
            agent="hermes",
            cwd=values.text(config.get("cwd")),
            git_branch=values.text(record.get("git_branch")),
            parent=values.text(record.get("parent_session_id")),
            started=values.seconds(record.get("started_at", record.get("session_start"))),
        )
        prompt = values.text(record.get("system_prompt"))
        if prompt:
            draft.said(Speaker.HARNESS, prompt)
        for message in messages:
            draft.note("compacted_messages", message.get("compacted") in (1, True))
            chat.read_message(draft, message)
        self._out.close(draft.id)

    def finish(self) -> None:
        """Nothing is held back."""
