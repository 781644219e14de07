"""pi and its relatives: session files of versions 1 to 3, and the events of `--mode json`.

Version 3 records form a tree by `id` and `parentId`. A shell command's non-zero exit stands as the
last line of its text; without an error the command ended with 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft, Recent
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker, ToolKind
from harness_adapters.synthesis.traces.tools import kind_of

_ROLES = {"toolResult", "bashExecution"}
_ENTRIES = {
    "session",
    "message",
    "model_change",
    "thinking_level_change",
    "compaction",
    "branch_summary",
    "custom",
    "custom_message",
    "label",
    "session_info",
}
_EVENTS = {"message_start", "message_update", "message_end", "turn_start", "turn_end", "agent_end"}


class Pi:
    """Reads records of pi."""

    name = "pi"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._id = ""
        self._seen: Recent = Recent()

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """A header without a harness id, or messages with the content blocks of pi."""
        for record in head:
            kind = values.text(record.get("type"))
            if kind == "session" and "cwd" in record and "harness" not in record:
                return True
            message = values.mapping(record.get("message"))
            if kind in ("message", "message_end") and (
                values.text(message.get("role")) in _ROLES
                or ("api" in message and "stopReason" in message)
                or ("parentId" in record and "role" in message)
            ):
                return True
            if kind in _EVENTS and ("assistantMessageEvent" in record or "toolResults" in record):
                return True
            if kind in ("model_change", "thinking_level_change") and "timestamp" in record:
                return True
        return False

    @property
    def _draft(self) -> Draft:
        return self._out.draft(self._id)

    def feed(self, record: Record) -> None:
        """Read one record."""
        kind = values.text(record.get("type"))
        if kind == "session":
            self._header(record)
            return
        identity = values.text(record.get("id"))
        if identity:
            if identity in self._seen:
                self._draft.note("duplicates")
                return
            self._seen[identity] = True
            self._draft.node(identity, values.text(record.get("parentId")))
        time = values.seconds(record.get("timestamp"))
        if kind in ("message", "message_end"):
            self._message(values.mapping(record.get("message")), time, identity)
        elif kind == "compaction":
            self._draft.note("compactions")
            self._draft.said(Speaker.SUMMARY, values.text(record.get("summary")), time=time)
        elif kind == "branch_summary":
            self._draft.said(Speaker.SUMMARY, values.text(record.get("summary")), time=time)
        elif kind == "custom_message":
            text, images = values.content(record.get("content"))
            self._draft.said(Speaker.HARNESS, text, images=images, time=time)
        elif kind not in _ENTRIES and kind not in _EVENTS:
            self._out.notes["records_beside_the_conversation"] += 1

    def finish(self) -> None:
        """Nothing is held back."""

    def _header(self, record: Record) -> None:
        self._id = values.text(record.get("id"))
        model = values.text(record.get("modelId"))
        parent = record.get("parentSession") or record.get("branchedFrom")
        self._draft.facts(
            agent="pi",
            agent_version=str(record.get("version") or ""),
            cwd=values.text(record.get("cwd")),
            model=model,
            parent=values.text(parent),
            started=values.seconds(record.get("timestamp")),
        )

    def _message(self, message: Record, time: float | None, node: str) -> None:
        role = message.get("role")
        time = values.seconds(message.get("timestamp")) or time
        text, images = values.content(message.get("content"))
        if role == "assistant":
            self._answer(message, time, node)
        elif role == "toolResult":
            self._result(message, text, images, time)
        elif role == "bashExecution":
            self._bash(message, time)
        elif role == "user":
            by_agent = message.get("attribution") == "agent"
            speaker = Speaker.HARNESS if by_agent else Speaker.USER
            self._draft.said(speaker, text, images=images, time=time)
        elif role in ("compactionSummary", "branchSummary"):
            self._draft.said(Speaker.SUMMARY, values.text(message.get("summary")), time=time)
        elif role:
            text = text or "\n".join(map(str, values.mapping(message.get("sections")).values()))
            self._draft.said(Speaker.HARNESS, text, images=images, time=time)
        else:
            self._draft.note("odd_records")

    def _answer(self, message: Record, time: float | None, node: str) -> None:
        blocks = list(values.mappings(message.get("content")))
        found = message.get("content")
        texts = [values.text(b.get("text")) for b in blocks if b.get("type") == "text"]
        thoughts = [values.text(b.get("thinking")) for b in blocks if b.get("type") == "thinking"]
        self._draft.facts(model=values.text(message.get("model")), agent="pi")
        self._draft.answer(
            text=found if isinstance(found, str) else "\n".join(texts),
            reasoning="\n".join(thoughts),
            model=values.text(message.get("model")),
            time=time,
            node=node,
        )
        self._draft.note("api_errors", message.get("stopReason") == "error")
        self._draft.note("interrupted_turns", message.get("stopReason") == "aborted")
        for block in blocks:
            if block.get("type") == "toolCall":
                name = values.text(block.get("name"))
                found = block.get("arguments", block.get("input"))
                self._draft.call(make_call(values.text(block.get("id")), name, found, time=time))

    def _result(self, message: Record, text: str, images: int, time: float | None) -> None:
        failed = message.get("isError") is True
        details = values.mapping(message.get("details"))
        name = values.text(message.get("toolName"))
        code = exit_codes.in_object({"exit_code": details.get("exitCode")})
        running = "async" in details or values.text(details.get("status")) == "running"
        shell = kind_of(name) is ToolKind.SHELL
        timed_out = failed and "timed out" in text[-200:]
        if shell and code is None and not running:
            code = exit_codes.stated(text) if failed else 0
        truncated = "truncation" in details and details["truncation"] is not None
        diff = values.text(details.get("diff"))
        self._draft.result(
            Result(
                text=text,
                call_id=values.text(message.get("toolCallId")),
                exit_code=code,
                failed=failed,
                running=running,
                interrupted=timed_out or (failed and "Command aborted" in text[-200:]),
                truncated=truncated or details.get("truncated") is True,
                images=images,
                time=time,
            ),
            diffs={"": diff} if diff else None,
        )

    def _bash(self, message: Record, time: float | None) -> None:
        """A command that a person ran in pi's prompt."""
        identity = f"bash-{values.text(message.get('command'))[:200]}-{message.get('timestamp')}"
        arguments = {"command": values.text(message.get("command"))}
        self._draft.call(make_call(identity, "bashExecution", arguments, time=time, by_user=True))
        self._draft.note("commands_by_people")
        self._draft.result(
            Result(
                text=values.text(message.get("output")),
                call_id=identity,
                exit_code=values.integer(message.get("exitCode")),
                interrupted=message.get("cancelled") is True,
                truncated=message.get("truncated") is True,
                time=time,
            )
        )
