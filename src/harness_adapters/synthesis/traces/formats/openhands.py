"""OpenHands: events of version 0 (evaluation outputs, trajectories) and of the V1 SDK.

A V0 event has `action` or `observation`, a V1 event a `kind`. Evaluation outputs hold a session's
events in `history`; the oldest as pairs of action and observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from harness_adapters.synthesis.traces import values
from harness_adapters.synthesis.traces.draft import Draft
from harness_adapters.synthesis.traces.formats import Record, chat
from harness_adapters.synthesis.traces.formats.openhands_v0 import V0Events
from harness_adapters.synthesis.traces.formats.openhands_v1 import V1Events
from harness_adapters.synthesis.traces.recorder import Recorder

_EVENT_LISTS = ("history", "trajectory", "events")


class OpenHands:
    """Reads outputs and events of OpenHands."""

    name = "openhands"

    def __init__(self, out: Recorder) -> None:
        self._out = out
        self._streams: tuple[V0Events, V1Events] | None = None

    @staticmethod
    def matches(head: Sequence[Record]) -> bool:
        """Events, records with a list of events, or the state file beside V1 events."""
        for record in head:
            if _is_event(record) or ("persistence_dir" in record and "workspace" in record):
                return True
            if any(_is_event(event) for event in list(_events(record))[:4]):
                return True
        return False

    def feed(self, record: Record) -> None:
        """Read one session's record, or one event."""
        events = list(_events(record))
        if events:
            draft = self._out.whole(chat.identity_of(record))
            self._describe(draft, record)
            self._read(events, (V0Events(draft), V1Events(draft)))
            self._out.close(draft.id)
        elif _is_event(record):
            if self._streams is None:
                draft = self._out.draft(values.text(record.get("sid")))
                draft.facts(agent="openhands")
                self._streams = V0Events(draft), V1Events(draft)
            self._read([record], self._streams)
        elif "history" in record or "persistence_dir" in record:
            draft = self._out.draft(values.text(record.get("id")))
            self._describe(draft, record)
            workspace = values.mapping(record.get("workspace"))
            draft.facts(cwd=values.text(workspace.get("working_dir")))
        else:
            self._out.notes["records_beside_the_conversation"] += 1

    def finish(self) -> None:
        """Nothing is held back."""

    @staticmethod
    def _read(events: Sequence[Record], streams: tuple[V0Events, V1Events]) -> None:
        for event in events:
            streams["kind" in event].feed(event)

    @staticmethod
    def _describe(draft: Draft, record: Record) -> None:
        metadata = values.mapping(record.get("metadata"))
        agent = values.mapping(record.get("agent"))
        llm = values.mapping(metadata.get("llm_config")) or values.mapping(metadata.get("llm"))
        llm = llm or values.mapping(agent.get("llm"))
        draft.facts(
            agent="openhands",
            model=values.text(llm.get("model")),
            git_commit=values.text(record.get("base_commit")),
        )
        chat.describe(draft, record)
        draft.meta["dataset_name"] = values.text(metadata.get("dataset"))
        patch = values.mapping(record.get("test_result")).get("git_patch", record.get("git_patch"))
        if isinstance(patch, str):
            draft.meta["patch"] = patch


def _is_event(record: Any) -> bool:
    if not isinstance(record, dict):
        return False
    if isinstance(record.get("action"), str) or isinstance(record.get("observation"), str):
        return bool(
            {"source", "args", "extras", "thought", "content", "cause"} & record.keys()
        ) and not ("response" in record and "observation" in record and "action" in record)
    kind = values.text(record.get("kind"))
    return kind.endswith(("Event", "Observation")) or (
        kind in ("Condensation", "CondensationRequest") and "timestamp" in record
    )


def _events(record: Record) -> Iterator[Record]:
    """A record's events in order; pairs of action and observation are taken apart."""
    for key in _EVENT_LISTS:
        found = values.embedded(record.get(key))
        if not isinstance(found, list):
            continue
        flat: list[Any] = []
        for entry in found:
            flat += entry if isinstance(entry, list) else [entry]
        if any(_is_event(entry) for entry in flat[:4]):
            yield from (entry for entry in flat if isinstance(entry, dict))
            return
