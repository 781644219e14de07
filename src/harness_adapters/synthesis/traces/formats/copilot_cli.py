"""GitHub Copilot CLI: `events.jsonl` below `~/.copilot/session-state`.

Every record is an event with `data`. A command's exit code is the last line of its result.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft, Recent
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import Result, Speaker

_PREFIXES = ("session.", "assistant.", "user.message", "tool.", "hook.", "system.message", "abort")


class CopilotCli:
    """Reads events of the Copilot CLI."""

    name = "copilot_cli"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._id = ""
        self._seen: Recent = Recent()
        self._asked: Recent = Recent()

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Events with `data` and a dotted type."""
        return any(
            isinstance(record.get("data"), dict)
            and values.text(record.get("type")).startswith(_PREFIXES)
            and "." in values.text(record.get("type"))
            for record in head
        )

    @property
    def _draft(self) -> Draft:
        return self._out.draft(self._id)

    def feed(self, record: Record) -> None:
        """Read one event."""
        identity = values.text(record.get("id"))
        if identity:
            if identity in self._seen:
                self._draft.note("duplicates")
                return
            self._seen[identity] = True
        kind = values.text(record.get("type"))
        data = values.mapping(record.get("data"))
        time = values.seconds(record.get("timestamp"))
        agent = values.text(data.get("parentToolCallId"))
        if kind in ("session.start", "session.resume"):
            self._start(data)
        elif kind == "user.message":
            text = values.text(data.get("content"))
            images = sum(
                "image" in str(a.get("type")) for a in values.mappings(data.get("attachments"))
            )
            source = values.text(data.get("source"))
            by_person = not agent and source in ("", "user")
            speaker = Speaker.USER if by_person else Speaker.HARNESS
            self._draft.said(speaker, text, images=images, time=time)
        elif kind == "system.message":
            self._draft.said(Speaker.HARNESS, values.text(data.get("content")), time=time)
        elif kind == "assistant.message":
            self._answer(data, agent, time)
        elif kind == "tool.execution_start":
            self._call(values.text(data.get("toolCallId")), data, "toolName", time)
        elif kind == "tool.execution_complete":
            self._complete(data, time)
        elif kind == "tool.user_requested":
            self._draft.note("commands_by_people")
        elif kind == "session.compaction_complete":
            self._draft.note("compactions")
            summary = values.text(data.get("summaryContent")) or values.text(data.get("summary"))
            self._draft.said(Speaker.SUMMARY, summary, time=time)
        elif kind == "session.truncation":
            self._draft.note("compactions")
        elif kind == "session.error":
            self._draft.note("api_errors")
        elif kind == "abort":
            self._draft.note("interrupted_turns")
        elif kind == "subagent.started":
            self._draft.note("subagents")

    def finish(self) -> None:
        """Nothing is held back."""

    def _start(self, data: Record) -> None:
        self._id = self._id or values.text(data.get("sessionId"))
        context = values.mapping(data.get("context"))
        self._draft.facts(
            agent="copilot_cli",
            agent_version=values.text(data.get("copilotVersion")),
            model=values.text(data.get("selectedModel")),
            cwd=values.text(context.get("cwd")),
            git_commit=values.text(context.get("headCommit")),
            git_branch=values.text(context.get("branch")),
            repository=values.text(context.get("repository")),
            started=values.seconds(data.get("startTime")),
        )

    def _answer(self, data: Record, agent: str, time: float | None) -> None:
        identity = values.text(data.get("messageId"))
        self._draft.answer(
            (agent, identity) if identity else None,
            text=values.text(data.get("content")),
            reasoning=values.text(data.get("reasoningText")),
            model=values.text(data.get("model")),
            agent=agent,
            time=time,
        )
        for request in values.mappings(data.get("toolRequests")):
            self._call(values.text(request.get("toolCallId")), request, "name", time)

    def _call(self, call_id: str, data: Record, key: str, time: float | None) -> None:
        """A call is requested in a message and told again when it starts."""
        if call_id in self._asked:
            return
        self._asked[call_id] = True
        name = values.text(data.get(key))
        self._draft.call(make_call(call_id, name, data.get("arguments"), time=time))

    def _complete(self, data: Record, time: float | None) -> None:
        result = values.mapping(data.get("result"))
        error = data.get("error")
        text = values.plain(result.get("content")) or values.plain(result.get("detailedContent"))
        if not text and error is not None:
            text = values.text(values.mapping(error).get("message")) or values.plain(error)
        code = exit_codes.stated(text)
        if code is None:
            code = exit_codes.in_object(result)
        diff = values.text(result.get("detailedContent"))
        self._draft.result(
            Result(
                text=text,
                call_id=values.text(data.get("toolCallId")),
                exit_code=code,
                failed=data.get("success") is False,
                running=code is None
                and "<command with shellId" in text
                and "still running" in text,
                time=time,
            ),
            diffs={"": diff} if diff.lstrip().startswith(("diff --git", "--- ")) else None,
        )
