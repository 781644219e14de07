"""Events of OpenHands V0: actions of an agent or a person, and observations that answer them."""

from __future__ import annotations

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.session import Result, Speaker

_CALLS = {"run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive"}
_CALLS |= {"delegate", "call_tool_mcp", "mcp", "task_tracking", "push"}
_SAID_OR_CALLED = {"think", "finish", "reject"}
_BESIDE = {"null", "change_agent_state", "agent_state_changed", "recall", "pause", "resume", "stop"}
_BESIDE |= {"condensation_request", "start", "loop_recovery", "success"}


class V0Events:
    """Reads events of V0 into one session."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._index = 0
        self._latest = ""
        self._ids: dict[object, str] = {}

    def feed(self, event: Record) -> None:
        """Read one event."""
        self._index += 1
        if isinstance(event.get("observation"), str):
            self._observation(event, event["observation"])
        elif isinstance(event.get("action"), str):
            self._action(event, event["action"])
        else:
            self._draft.note("odd_records")

    def _action(self, event: Record, action: str) -> None:
        arguments = values.mapping(event.get("args")) or {
            key: value
            for key, value in event.items()
            if key not in ("action", "source", "timestamp", "id", "message", "cause")
        }
        time = values.seconds(event.get("timestamp"))
        metadata = values.mapping(event.get("tool_call_metadata"))
        source = values.text(event.get("source"))
        thought = values.text(arguments.get("thought"))
        text = values.text(arguments.get("content")) or values.text(event.get("message"))
        response = values.mapping(metadata.get("model_response"))
        key = values.text(response.get("id")) or None
        model = values.text(response.get("model"))
        if action == "system":
            self._draft.said(Speaker.HARNESS, text, time=time)
        elif action == "message":
            by_person = source == "user" or (not source and not self._latest)
            self._latest = self._latest or "message"
            if by_person:
                images = len(values.sequence(arguments.get("image_urls")))
                self._draft.said(Speaker.USER, text, images=images, time=time)
            else:
                self._draft.answer(key, text=text, model=model, time=time)
        elif action == "condensation":
            self._draft.note("compactions")
            summary = values.text(arguments.get("summary"))
            self._draft.said(Speaker.SUMMARY, summary, time=time)
        elif action in _BESIDE or source in ("user", "environment"):
            self._draft.note("commands_by_people", action in _CALLS)
        elif action in _CALLS or metadata:
            self._draft.answer(key, text=thought, model=model, time=time)
            self._call(event, action, arguments, metadata, time)
        elif action in _SAID_OR_CALLED:
            words = thought or values.text(arguments.get("final_thought")) or text
            self._draft.answer(key, text=words, model=model, time=time)
        else:
            self._draft.note("odd_records")

    def _call(
        self, event: Record, action: str, arguments: Record, metadata: Record, time: float | None
    ) -> None:
        number = event.get("id") if isinstance(event.get("id"), int) else self._index
        identity = f"event-{number}"
        self._ids[number] = identity
        self._latest = identity
        name = values.text(metadata.get("function_name")) or action
        asked = arguments
        if name == "str_replace_editor" and action == "read":
            asked = {"command": "view", **arguments}
        kept = {k: v for k, v in asked.items() if v is not None and k != "thought"}
        self._draft.call(make_call(identity, name, kept, time=time))

    def _observation(self, event: Record, observation: str) -> None:
        extras = values.mapping(event.get("extras"))
        cause = event.get("cause")
        source = values.text(event.get("source"))
        identity = self._ids.get(cause, "") if isinstance(cause, int) else ""
        if not identity and cause is None and self._latest.startswith("event-"):
            identity = "" if self._draft.answered(self._latest) else self._latest
        if observation in _BESIDE and not identity:
            return
        if not identity and source in ("user", "environment") and observation != "error":
            return
        text = values.plain(event.get("content"))
        metadata = values.mapping(extras.get("metadata"))
        code = values.integer(metadata.get("exit_code"))
        if code is None:
            code = values.integer(extras.get("exit_code", event.get("exit_code")))
        if code is None and observation == "run":
            code = exit_codes.stated(text)
        shown = text[-400:] + values.text(metadata.get("suffix"))
        running = code == -1 and ("no new output" in shown or "timed out" in shown)
        path = values.text(extras.get("path"))
        diff = values.text(extras.get("diff"))
        self._draft.result(
            Result(
                text=text,
                call_id=identity,
                exit_code=None if code == -1 else code,
                failed=observation in ("error", "user_rejected") or text.startswith("ERROR:"),
                running=running,
                time=values.seconds(event.get("timestamp")),
            ),
            diffs={path: diff} if path and diff else None,
        )
