"""The Hub's Session Trace Simple Format (STS): a header line, then one message per line.

https://huggingface.co/docs/hub/session-traces-format: `type`, `harness` and `id` in the header;
`role`, `content`, `reasoningContent`, `toolCalls`, `toolCallId` in a message.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.formats import Record, chat
from harness_adapters.synthesis.traces.recorder import Recorder

_CAMEL = {"toolCalls", "reasoningContent"}


class Sts:
    """Reads an STS file; a further header starts a further session."""

    name = "sts"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._id = ""

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """A header with a harness, or enveloped messages with its own keys."""
        for record in head:
            if record.get("type") == "session" and "harness" in record:
                return True
            message = values.mapping(record.get("message"))
            if record.get("type") == "message" and (
                _CAMEL & message.keys() or message.get("role") == "tool"
            ):
                return True
        return False

    def feed(self, record: Record) -> None:
        """Read the header or a message."""
        if record.get("type") == "session":
            self._id = values.text(record.get("id"))
            draft = self._out.draft(self._id)
            draft.facts(
                agent=values.text(record.get("harness")), cwd=values.text(record.get("cwd"))
            )
            draft.facts(model=values.text(record.get("model")))
        elif record.get("type") == "message":
            chat.read_message(self._out.draft(self._id), values.mapping(record.get("message")))
        else:
            self._out.notes["records_beside_the_conversation"] += 1

    def finish(self) -> None:
        """Nothing is held back."""
