"""Codex: rollout files below `~/.codex/sessions` of all versions, and `codex exec --json` output.

A rollout repeats itself: `response_item` records are what the model was sent and answered,
`event_msg` records what the interface showed. Turns, calls and results are read from the former,
exit codes and diffs also from the latter. Where a rollout has events alone, they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft, Recent
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import FileState, Result, Speaker

_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CALLS = {
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "web_search_call",
    "tool_search_call",
    "image_generation_call",
    "mcp_call",
}
_OUTPUTS = {"function_call_output", "custom_tool_call_output", "tool_search_output"}
_ITEMS = _CALLS | _OUTPUTS | {"message", "reasoning"}
_INJECTED = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<turn_")
_STREAM = {"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started"} | {
    "item.completed",
    "item.updated",
}


class Codex:
    """Reads records of codex."""

    name = "codex"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._id = ""
        self._turn = 0
        self._answering = False
        self._items = 0
        self._spoken = ""
        self._shown = ""
        self._exits: Recent = Recent()

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Envelopes of a rollout, bare items of an old one, or events of `exec --json`."""
        for record in head:
            kind = values.text(record.get("type"))
            if kind in _ENVELOPES and isinstance(record.get("payload"), dict):
                return True
            if kind in _STREAM and ("thread_id" in record or "item" in record or "usage" in record):
                return True
            if record.get("record_type") == "state":
                return True
            if kind in ("function_call", "local_shell_call") and "call_id" in record:
                return True
        return False

    def finish(self) -> None:
        """Read what was shown last and never recorded as an item."""
        self._flush()

    def _flush(self) -> None:
        if self._shown:
            text, self._shown = self._shown, ""
            self._speak(None, text=text)

    @property
    def _draft(self) -> Draft:
        return self._out.draft(self._id)

    def feed(self, record: Record) -> None:
        """Read one record."""
        kind = values.text(record.get("type"))
        time = values.seconds(record.get("timestamp"))
        payload = values.mapping(record.get("payload"))
        if kind == "session_meta":
            self._meta(payload)
        elif kind == "response_item":
            self._item(payload, time)
        elif kind == "event_msg":
            self._event(payload, time)
        elif kind == "turn_context":
            cwd, model = values.text(payload.get("cwd")), values.text(payload.get("model"))
            self._draft.facts(agent="codex", cwd=cwd, model=model)
        elif kind == "compacted":
            self._draft.note("compactions")
            self._draft.said(Speaker.SUMMARY, values.text(payload.get("message")), time=time)
        elif kind in _STREAM:
            self._stream(kind, record)
        elif kind in _ITEMS:
            self._item(record, time)
        elif not kind and "id" in record and ("instructions" in record or "git" in record):
            self._meta(record)
        else:
            self._out.notes["records_beside_the_conversation"] += 1

    def _meta(self, payload: Record) -> None:
        """A rollout's first record; later ones are those of the sessions it was forked from."""
        if self._id:
            self._draft.note("further_headers")
            return
        self._id = values.text(payload.get("id"))
        git = values.mapping(payload.get("git"))
        self._draft.facts(
            agent="codex",
            agent_version=values.text(payload.get("cli_version")),
            cwd=values.text(payload.get("cwd")),
            git_commit=values.text(git.get("commit_hash")),
            git_branch=values.text(git.get("branch")),
            repository=values.text(git.get("repository_url")),
            parent=values.text(payload.get("forked_from_id")),
            started=values.seconds(payload.get("timestamp")),
        )

    def _speak(self, time: float | None, *, text: str = "", reasoning: str = "") -> None:
        """Words of the model: items in a row without an output between are one turn."""
        if not self._answering:
            self._turn += 1
            self._answering = True
        self._draft.answer(self._turn, text=text, reasoning=reasoning, time=time)

    def _item(self, item: Record, time: float | None) -> None:
        self._items += 1
        kind = values.text(item.get("type"))
        if kind not in ("message", "reasoning"):
            self._flush()
        if kind == "message":
            self._message(item, time)
        elif kind == "reasoning":
            shown, _ = values.content(item.get("content") or item.get("summary"))
            self._speak(time, reasoning=shown)
        elif kind in _CALLS:
            self._speak(time)
            self._call(item, kind, time)
        elif kind in _OUTPUTS:
            self._answering = False
            output = item.get("output", item.get("tools"))
            self._output(values.text(item.get("call_id")), output, time)
        elif kind in ("compaction", "compaction_summary"):
            self._draft.note("compactions")
        else:
            self._draft.note("records_beside_the_conversation")

    def _message(self, item: Record, time: float | None) -> None:
        text, images = values.content(item.get("content"))
        if item.get("role") == "assistant":
            if self._shown != text:
                self._flush()
            self._spoken, self._shown = text, ""
            self._speak(time, text=text)
            return
        self._flush()
        self._answering = False
        injected = item.get("role") != "user" or text.lstrip().startswith(_INJECTED)
        speaker = Speaker.HARNESS if injected else Speaker.USER
        self._draft.said(speaker, text, images=images, time=time)

    def _call(self, item: Record, kind: str, time: float | None) -> None:
        name = values.text(item.get("name")) or kind.removesuffix("_call")
        arguments: Any = item.get("arguments", item.get("input", item.get("action")))
        if kind == "custom_tool_call":
            arguments = values.embedded(arguments)
            if not isinstance(arguments, dict):
                arguments = {"input": arguments}
        call_id = values.text(item.get("call_id")) or values.text(item.get("id"))
        self._draft.call(make_call(call_id, name, arguments, time=time))
        if kind in ("web_search_call", "image_generation_call"):
            self._draft.note("calls_answered_elsewhere")

    def _output(self, call_id: str, output: Any, time: float | None) -> None:
        inner = values.embedded(output)
        code = exit_codes.in_object(inner) if isinstance(inner, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            text, images = inner["output"], 0
        else:
            text, images = values.content(output)
            text = text or values.plain(output)
        if code is None:
            code = exit_codes.stated(text)
        if code is None:
            code = self._exits.get(call_id)
        head = text[:400]
        self._draft.result(
            Result(
                text=text,
                call_id=call_id,
                exit_code=code,
                failed=text.startswith(("apply_patch verification failed", "failed ", "aborted")),
                running="Process running with session ID" in head,
                interrupted=head.startswith("aborted by user"),
                truncated="Warning: truncated output" in head or "tokens truncated…" in text,
                images=images,
                time=time,
            ),
            diffs=None,
        )

    def _event(self, event: Record, time: float | None) -> None:
        kind = values.text(event.get("type"))
        if kind == "user_message" and not self._items:
            self._answering = False
            self._draft.said(Speaker.USER, values.text(event.get("message")), time=time)
        elif kind == "agent_message":
            self._flush()
            shown = values.text(event.get("message"))
            self._shown = "" if shown == self._spoken else shown
        elif kind == "exec_command_end":
            self._exits[values.text(event.get("call_id"))] = values.integer(event.get("exit_code"))
        elif kind == "patch_apply_end":
            self._patch(event)
        elif kind == "turn_aborted":
            self._draft.note("interrupted_turns")
        elif kind == "thread_rolled_back":
            self._draft.note("rolled_back", values.integer(event.get("num_turns")) or 1)
        elif kind == "error":
            self._draft.note("api_errors")

    def _patch(self, event: Record) -> None:
        """What a patch changed: whole files where they were added, diffs where not."""
        before: list[FileState] = []
        after: list[FileState] = []
        diffs: dict[str, str] = {}
        for path, change in values.mapping(event.get("changes")).items():
            found = values.mapping(change)
            form = values.text(found.get("type")) or next(iter(found), "")
            inner = values.mapping(found.get(form)) or found
            if form == "add" and isinstance(inner.get("content"), str):
                before.append(FileState(path, None))
                after.append(FileState(path, inner["content"]))
            elif form == "delete":
                if isinstance(inner.get("content"), str):
                    before.append(FileState(path, inner["content"]))
                after.append(FileState(path, None))
            elif isinstance(inner.get("unified_diff"), str):
                diffs[path] = inner["unified_diff"]
        if event.get("success") is not False:
            self._draft.changed(values.text(event.get("call_id")), before, after, diffs)

    def _stream(self, kind: str, record: Record) -> None:
        """Events of `codex exec --json`."""
        if kind == "thread.started":
            self._id = values.text(record.get("thread_id"))
            self._draft.facts(agent="codex")
        if kind != "item.completed":
            return
        item = values.mapping(record.get("item"))
        form = values.text(item.get("type"))
        identity = values.text(item.get("id"))
        if form == "agent_message":
            self._speak(None, text=values.text(item.get("text")))
        elif form == "reasoning":
            self._speak(None, reasoning=values.text(item.get("text")))
        elif form in ("command_execution", "mcp_tool_call", "file_change", "web_search"):
            self._speak(None)
            named = values.text(item.get("tool")) or form
            kept = {k: v for k, v in item.items() if k in ("command", "changes", "query")}
            arguments = values.mapping(item.get("arguments")) or kept
            self._draft.call(make_call(identity, named, arguments))
            self._answering = False
            text = values.plain(item.get("aggregated_output", item.get("result", "")))
            code = values.integer(item.get("exit_code"))
            failed = item.get("status") == "failed"
            self._draft.result(Result(text, identity, exit_code=code, failed=failed))
        elif form == "error":
            self._draft.note("api_errors")
