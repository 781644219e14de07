"""opencode: exports, its SQLite database, its older storage folder, and `run --format json` events.

A session is messages, and a message is parts; databases and folders are put together to the form
of an export before they come here. A part of type `tool` holds call and result; a non-zero exit is
still `completed`, the code stands in the state's `metadata`.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.synthesis.traces import exit_codes, values
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.draft import Draft, Recent
from harness_adapters.synthesis.traces.formats import Record
from harness_adapters.synthesis.traces.recorder import Recorder
from harness_adapters.synthesis.traces.session import FileState, Result, Speaker

_PARTS = {
    "text",
    "reasoning",
    "tool",
    "file",
    "step-start",
    "step-finish",
    "snapshot",
    "patch",
    "agent",
    "subtask",
    "retry",
    "compaction",
}


class OpenCode:
    """Reads records of opencode."""

    name = "opencode"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._seen: Recent = Recent()
        self._turn = 0

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """An export, a run's event with a part, or one file of the storage folder."""
        for record in head:
            info = values.mapping(record.get("info"))
            if "messages" in record and ("directory" in info or "projectID" in info):
                return True
            if "sessionID" in record and ("part" in record or "role" in record):
                return True
            if "messageID" in record and values.text(record.get("type")) in _PARTS:
                return True
            if values.text(record.get("type")) in _PARTS and "id" in record and "time" in record:
                return True
            if "projectID" in record and "directory" in record and "time" in record:
                return True
        return False

    def feed(self, record: Record) -> None:
        """Read an export, an event, or a file of the storage folder."""
        if "messages" in record:
            self._session(record)
        elif "part" in record:
            self._event(record)
        elif "messageID" in record or (
            "role" not in record and values.text(record.get("type")) in _PARTS
        ):
            draft = self._out.draft(values.text(record.get("sessionID")))
            self._part(draft, record, "", values.text(record.get("messageID")), {})
        elif "role" in record:
            draft = self._out.draft(values.text(record.get("sessionID")))
            self._message(draft, record, [])
        elif "projectID" in record:
            self._header(record)
        elif record.get("type") == "error":
            self._out.draft(values.text(record.get("sessionID"))).note("api_errors")
        else:
            self._out.notes["records_beside_the_conversation"] += 1

    def finish(self) -> None:
        """Nothing is held back."""

    def _header(self, info: Record, *, whole: bool = False) -> Draft:
        identity = values.text(info.get("id"))
        draft = self._out.whole(identity) if whole else self._out.draft(identity)
        model = info.get("model")
        draft.facts(
            agent="opencode",
            agent_version=values.text(info.get("version")),
            cwd=values.text(info.get("directory")),
            model=values.text(values.mapping(model).get("id")) or values.text(model),
            parent=values.text(info.get("parentID")),
            started=values.seconds(values.mapping(info.get("time")).get("created")),
        )
        return draft

    def _session(self, record: Record) -> None:
        draft = self._header(values.mapping(record.get("info")), whole=True)
        for message in values.mappings(record.get("messages")):
            info = values.mapping(message.get("info")) or message
            self._message(draft, info, list(values.mappings(message.get("parts"))))
        for diff in values.mappings(record.get("diffs")):
            path = values.text(diff.get("file"))
            if path and isinstance(diff.get("after"), str):
                draft.file(FileState(path, diff["after"]))
        self._out.close(draft.id)

    def _message(self, draft: Draft, info: Record, parts: list[Record]) -> None:
        identity = values.text(info.get("id"))
        role = values.text(info.get("role"))
        time = values.seconds(values.mapping(info.get("time")).get("created"))
        model = values.text(info.get("modelID"))
        if role == "assistant":
            if info.get("summary") is True:
                draft.note("compactions")
            name = values.text(values.mapping(info.get("error")).get("name"))
            draft.note("interrupted_turns", name == "MessageAbortedError")
            draft.note("api_errors", bool(name) and name != "MessageAbortedError")
            draft.facts(model=model)
            if not any(part.get("type") == "step-start" for part in parts):
                self._turn += 1
                draft.answer((identity, self._turn), model=model, time=time)
        for part in parts:
            self._part(draft, part, role, identity, info)

    def _event(self, record: Record) -> None:
        """One line of `opencode run --format json`."""
        part = values.mapping(record.get("part"))
        session = values.text(part.get("sessionID")) or values.text(record.get("sessionID"))
        draft = self._out.draft(session)
        draft.facts(agent="opencode", started=values.seconds(record.get("timestamp")))
        self._part(draft, part, "assistant", values.text(part.get("messageID")), {})

    def _part(self, draft: Draft, part: Record, role: str, message: str, info: Record) -> None:
        kind = values.text(part.get("type"))
        identity = values.text(part.get("id"))
        if identity:
            if (draft.id, identity) in self._seen:
                draft.note("duplicates")
                return
            self._seen[draft.id, identity] = True
        time = values.seconds(values.mapping(part.get("time")).get("start"))
        text = values.text(part.get("text"))
        if kind == "step-start":
            self._turn += 1
            model = values.text(info.get("modelID"))
            draft.answer((message, self._turn), model=model, time=time)
        elif kind == "text" and role == "assistant":
            draft.answer((message, self._turn), text=text, time=time)
        elif kind == "text" and not role:
            draft.note("parts_without_message")
            draft.said(Speaker.HARNESS, text, time=time)
        elif kind == "text":
            synthetic = part.get("synthetic") is True or part.get("ignored") is True
            draft.said(Speaker.HARNESS if synthetic else Speaker.USER, text, time=time)
        elif kind == "reasoning":
            draft.answer((message, self._turn), reasoning=text, time=time)
        elif kind == "tool":
            draft.answer((message, self._turn), time=time)
            self._tool(draft, part)
        elif kind == "file":
            is_image = values.text(part.get("mime")).startswith("image/")
            draft.note("attachments")
            draft.said(Speaker.HARNESS, "", images=int(is_image), time=time)
        elif kind == "compaction":
            draft.note("compactions")

    def _tool(self, draft: Draft, part: Record) -> None:
        state = values.mapping(part.get("state"))
        metadata = values.mapping(state.get("metadata"))
        times = values.mapping(state.get("time"))
        name = values.text(part.get("tool"))
        call_id = values.text(part.get("callID")) or values.text(part.get("id"))
        start = values.seconds(times.get("start"))
        found = state.get("input", state.get("raw"))
        draft.call(make_call(call_id, name, found, time=start))
        status = values.text(state.get("status"))
        if status in ("pending", "running"):
            draft.note("still_running")
            return
        output = values.plain(state.get("output", state.get("error")))
        code = values.integer(metadata.get("exit"))
        before, after, diffs = _changes(metadata, values.mapping(found), failed=status == "error")
        draft.result(
            Result(
                text=output,
                call_id=call_id,
                exit_code=exit_codes.stated(output) if code is None and name == "bash" else code,
                failed=status == "error",
                interrupted=metadata.get("interrupted") is True,
                truncated=metadata.get("truncated") is True,
                images=len(values.sequence(state.get("attachments"))),
                time=values.seconds(times.get("end")),
            ),
            before=before,
            after=after,
            diffs=diffs,
        )


def _changes(
    metadata: Record, arguments: Record, *, failed: bool
) -> tuple[list[FileState], list[FileState], dict[str, str]]:
    """Whole files around an edit, as its metadata holds them, and its diff."""
    before: list[FileState] = []
    after: list[FileState] = []
    diffs: dict[str, str] = {}
    if failed:
        return before, after, diffs
    changed = [values.mapping(metadata.get("filediff")), *values.mappings(metadata.get("files"))]
    for change in changed:
        path = values.text(change.get("file")) or values.text(change.get("filePath"))
        if not path:
            continue
        if isinstance(change.get("before"), str):
            before.append(FileState(path, change["before"]))
        if isinstance(change.get("after"), str):
            after.append(FileState(path, change["after"]))
        if isinstance(change.get("diff"), str):
            diffs[path] = change["diff"]
    path = values.text(arguments.get("filePath")) or values.text(metadata.get("filepath"))
    if path and metadata.get("exists") is False:
        before.append(FileState(path, None))
    if path and isinstance(metadata.get("diff"), str) and path not in diffs:
        diffs[path] = metadata["diff"]
    return before, after, diffs
