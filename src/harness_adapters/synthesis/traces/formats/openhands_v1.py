"""Events of the OpenHands V1 SDK; edits carry the whole file before and after."""

from __future__ import annotations

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft, Recent
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.session import FileState, Result, Speaker


class V1Events:
    """Reads events of V1 into one session."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._seen: Recent = Recent()

    def feed(self, event: Record) -> None:
        """Read one event."""
        identity = values.text(event.get("id"))
        if identity:
            if identity in self._seen:
                self._draft.note("duplicates")
                return
            self._seen[identity] = True
        kind = values.text(event.get("kind"))
        time = values.seconds(event.get("timestamp"))
        if kind == "ActionEvent":
            self._action(event, time)
        elif kind == "MessageEvent":
            self._message(event, time)
        elif kind in ("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"):
            self._observation(event, kind, time)
        elif kind == "SystemPromptEvent":
            text, _ = values.content(event.get("system_prompt"))
            self._draft.said(Speaker.HARNESS, text, time=time)
        elif kind == "Condensation":
            self._draft.note("compactions")
            self._draft.said(Speaker.SUMMARY, values.text(event.get("summary")), time=time)
        elif kind == "ConversationErrorEvent":
            self._draft.note("api_errors")
        elif kind == "PauseEvent":
            self._draft.note("interrupted_turns")

    def _action(self, event: Record, time: float | None) -> None:
        thought, _ = values.content(event.get("thought"))
        response = values.text(event.get("llm_response_id"))
        self._draft.answer(
            response or None,
            text=thought,
            reasoning=values.text(event.get("reasoning_content")),
            time=time,
        )
        requested = values.mapping(event.get("tool_call"))
        name = values.text(event.get("tool_name")) or values.text(requested.get("name"))
        action = values.mapping(event.get("action"))
        kept = {key: value for key, value in action.items() if value is not None and key != "kind"}
        arguments = kept or requested.get("arguments")
        call_id = values.text(event.get("tool_call_id")) or values.text(requested.get("id"))
        self._draft.call(make_call(call_id, name, arguments, time=time))

    def _message(self, event: Record, time: float | None) -> None:
        message = values.mapping(event.get("llm_message"))
        text, images = values.content(message.get("content"))
        source = event.get("source")
        if source == "agent":
            reasoning = values.text(message.get("reasoning_content"))
            response = values.text(event.get("llm_response_id"))
            self._draft.answer(response or None, text=text, reasoning=reasoning, time=time)
        else:
            speaker = Speaker.USER if source == "user" else Speaker.HARNESS
            self._draft.said(speaker, text, images=images, time=time)

    def _observation(self, event: Record, kind: str, time: float | None) -> None:
        found = values.mapping(event.get("observation"))
        text, images = values.content(found.get("content"))
        text = text or values.text(found.get("output")) or values.text(event.get("error"))
        text = text or values.text(event.get("rejection_reason"))
        metadata = values.mapping(found.get("metadata"))
        code = values.integer(found.get("exit_code"))
        if code is None:
            code = values.integer(metadata.get("exit_code"))
        if code is None:
            code = exit_codes.stated(text)
        timed_out = found.get("timeout") is True
        running = code == -1 and (timed_out or "still running" in text or "no new output" in text)
        path = values.text(found.get("path"))
        failed = kind != "ObservationEvent" or found.get("is_error") is True
        before, after = [], []
        if path and not failed:
            old, new = found.get("old_content"), found.get("new_content")
            if isinstance(old, str) or found.get("prev_exist") is False:
                before.append(FileState(path, old if isinstance(old, str) else None))
            if isinstance(new, str):
                after.append(FileState(path, new))
        self._draft.result(
            Result(
                text=text,
                call_id=values.text(event.get("tool_call_id")),
                exit_code=None if code == -1 else code,
                failed=failed,
                running=running,
                interrupted=timed_out and not running,
                images=images,
                time=time,
            ),
            before=before,
            after=after,
        )
