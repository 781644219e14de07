"""One session while it is read: counted as it grows, built when kept.

With `keep` a `Draft` becomes a `Session`; without it only counters and the latest identifiers are
held, so that files of any size are counted in bounded memory. Both ways count alike.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any

from harness_adapters.synthesis.traces.session import (
    FileState,
    Result,
    Said,
    Session,
    Speaker,
    ToolCall,
    ToolKind,
    Turn,
)

REMEMBERED = 200_000
"""Identifiers that are remembered per session to recognise duplicates and pair results."""


@dataclasses.dataclass(slots=True)
class Counts:
    """What a file holds; `docs/synthesis.md` defines each."""

    sessions: int = 0
    turns: int = 0
    tool_calls: int = 0
    results: int = 0
    exit_codes_known: int = 0
    edits: int = 0
    broken_lines: int = 0

    def add(self, other: Counts) -> None:
        """Add the other's numbers to these."""
        for name in self.__dataclass_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Recent(OrderedDict[Any, Any]):
    """A mapping that forgets its oldest entries."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > REMEMBERED:
            self.popitem(last=False)


@dataclasses.dataclass(frozen=True, slots=True)
class _Files:
    """What a log says of the files around a call."""

    before: tuple[FileState, ...] = ()
    after: tuple[FileState, ...] = ()
    diffs: Mapping[str, str] | None = None


_NO_FILES = _Files()


@dataclasses.dataclass(slots=True)
class _Call:
    """A call whose result may still come; `call` is None when only counting."""

    fingerprint: int
    name: str
    call: ToolCall | None
    by_user: bool
    answered: bool = False
    shown: int = 0
    """Hash of the result's text, to tell a repetition from a second result."""
    result: Result | None = None
    files: _Files = dataclasses.field(default_factory=lambda: _NO_FILES)

    def built(self) -> ToolCall:
        assert self.call is not None
        return dataclasses.replace(
            self.call,
            result=self.result,
            before=self.files.before,
            after=self.files.after,
            diffs=self.files.diffs or {},
        )


@dataclasses.dataclass(slots=True)
class _Turn:
    before: tuple[Said, ...]
    agent: str
    model: str
    time: float | None
    texts: list[str] = dataclasses.field(default_factory=list)
    reasoning: list[str] = dataclasses.field(default_factory=list)
    calls: list[_Call] = dataclasses.field(default_factory=list)
    nodes: list[str] = dataclasses.field(default_factory=list)


class Draft:
    """One session while it is read."""

    def __init__(self, identity: str, form: str, source: str, keep: bool) -> None:
        self.id = identity
        self.counts = Counts(sessions=1)
        self.notes: Counter[str] = Counter()
        self.meta: dict[str, Any] = {}
        self.held = 0
        self._form, self._source, self._keep = form, source, keep
        self._facts: dict[str, Any] = {}
        self._turns: list[_Turn] = []
        self._by_key: Recent = Recent()
        self._latest: _Turn | None = None
        self._waiting: list[Said] = []
        self._calls: Recent = Recent()
        self._recent: list[str] = []
        self._early: dict[str, tuple[Result, _Files, int]] = {}
        self._orphans: list[Result] = []
        self._files: list[FileState] = []
        self._parents: dict[str, str] = {}
        self._last_node = ""

    def facts(self, **found: Any) -> None:
        """Keep what is known of the session; the first non-empty value of each name stays."""
        for name, value in found.items():
            if value not in (None, "") and not self._facts.get(name):
                self._facts[name] = value

    def note(self, name: str, times: int = 1) -> None:
        """Count something that was met."""
        if times:
            self.notes[name] += times

    def node(self, identity: str, parent: str) -> None:
        """Place a record in the session's tree; without a known parent it follows the last one."""
        if not self._keep or not identity:
            return
        if parent not in self._parents:
            if parent and self._parents:
                self.note("missing_parents")
            parent = self._last_node
        self._parents[identity] = parent
        self._last_node = identity

    def said(
        self, speaker: Speaker, text: str, *, images: int = 0, time: float | None = None
    ) -> None:
        """Something said to the agent."""
        self.note("images", images)
        if self._keep and (text or images):
            self.held += len(text)
            self._waiting.append(Said(speaker, text, images, time))

    def answer(
        self,
        key: Any = None,
        *,
        text: str = "",
        reasoning: str = "",
        model: str = "",
        agent: str = "",
        time: float | None = None,
        node: str = "",
    ) -> None:
        """The model's words; those under one `key` are one turn, without a key each is its own."""
        turn = self._by_key.get(key) if key is not None else None
        if turn is None:
            self.counts.turns += 1
            self._recent = []
            turn = _Turn(tuple(self._waiting), agent, model, time)
            self._waiting = []
            if self._keep:
                self._turns.append(turn)
            if key is not None:
                self._by_key[key] = turn if self._keep else True
        if not isinstance(turn, _Turn):
            return
        self._latest = turn
        if self._keep:
            self.held += len(text) + len(reasoning)
            if text:
                turn.texts.append(text)
            if reasoning:
                turn.reasoning.append(reasoning)
            if node:
                turn.nodes.append(node)

    def call(self, call: ToolCall) -> bool:
        """A call of the turn that was answered last; False when it only repeats an earlier one.

        A call with the id of an earlier one is a repetition when its name and arguments are the
        same, too; harnesses whose models number their calls anew use an id more than once.
        """
        fingerprint = hash((call.name, repr(sorted(call.arguments.items(), key=str))))
        known: _Call | None = self._calls.get(call.id) if call.id else None
        if known is not None and known.fingerprint == fingerprint and not known.answered:
            self.note("duplicates")
            return False
        if not self.counts.turns:
            self.answer(time=call.time)
        if not call.by_user:
            self.counts.tool_calls += 1
            self.counts.edits += call.kind is ToolKind.EDIT
        self.note("malformed_arguments", call.malformed)
        entry = _Call(fingerprint, call.name, call if self._keep else None, call.by_user)
        identity = call.id or f"call-{self.counts.tool_calls}"
        self._calls[identity] = entry
        self._recent.append(identity)
        if self._keep:
            assert self._latest is not None
            self._latest.calls.append(entry)
            self.held += sum(len(str(value)) for value in call.arguments.values())
        early = self._early.pop(call.id, None) if call.id else None
        if early is not None:
            self._pair(entry, *early)
        return True

    def answered(self, call_id: str) -> bool:
        """Whether the call with this id has its result already."""
        known = self._calls.get(call_id)
        return known is not None and known.answered

    def unanswered(self) -> str:
        """The id of the latest turn's first call without a result, for results without ids."""
        return next((call for call in self._recent if not self.answered(call)), "")

    def tool(self, call_id: str) -> str:
        """The name of the tool that was called under this id; empty when unknown."""
        known: _Call | None = self._calls.get(call_id)
        return known.name if known else ""

    def result(
        self,
        result: Result,
        *,
        before: Iterable[FileState] = (),
        after: Iterable[FileState] = (),
        diffs: Mapping[str, str] | None = None,
    ) -> None:
        """What came back; paired with its call by id, whichever of the two is read first."""
        entry: _Call | None = self._calls.get(result.call_id) if result.call_id else None
        if entry is not None and entry.answered:
            if entry.shown == hash(result.text):
                self.note("duplicates")
                return
            self.note("second_results")
        if entry is None or not entry.by_user:
            self.counts.results += 1
            self.counts.exit_codes_known += result.exit_code is not None
        self.note("images", result.images)
        self.note("still_running", result.running)
        self.note("interrupted", result.interrupted)
        self.note("truncated_results", result.truncated)
        if self._keep:
            self.held += len(result.text)
        files = _Files(tuple(before), tuple(after), diffs)
        kept = result if self._keep else dataclasses.replace(result, text="")
        if entry is not None:
            self._pair(entry, result, files, hash(result.text))
        elif result.call_id and result.call_id not in self._early:
            files = files if self._keep else _NO_FILES
            self._early[result.call_id] = (kept, files, hash(result.text))
        else:
            self._orphans.append(kept)

    def changed(
        self,
        call_id: str,
        before: Iterable[FileState],
        after: Iterable[FileState],
        diffs: Mapping[str, str],
    ) -> None:
        """What a call did to files, where the log tells it apart from the result."""
        entry: _Call | None = self._calls.get(call_id)
        if entry is None or not self._keep:
            return
        entry.files = _Files(tuple(before), tuple(after), dict(diffs))

    @staticmethod
    def _pair(entry: _Call, result: Result, files: _Files, shown: int) -> None:
        entry.answered, entry.shown = True, shown
        if entry.call is not None:
            entry.result = result
            entry.files = _Files(
                files.before or entry.files.before,
                files.after or entry.files.after,
                files.diffs or entry.files.diffs,
            )

    def file(self, state: FileState) -> None:
        """A whole file that the log gives without tying it to a call."""
        if self._keep:
            self._files.append(state)
            self.held += len(state.text or "")

    def build(self) -> Session:
        """The session as read so far."""
        path = self._path()
        turns = []
        for index, turn in enumerate(self._turns):
            off = bool(path) and bool(turn.nodes) and not turn.agent
            off = off and not any(node in path for node in turn.nodes)
            turns.append(
                Turn(
                    index=index,
                    before=turn.before,
                    text="\n".join(turn.texts),
                    reasoning="\n".join(turn.reasoning),
                    calls=tuple(entry.built() for entry in turn.calls),
                    model=turn.model,
                    agent=turn.agent,
                    branch=off,
                    time=turn.time,
                )
            )
        orphans = [*self._orphans, *(result for result, _, _ in self._early.values())]
        notes = Counter(self.notes)
        notes["abandoned_turns"] += sum(turn.branch for turn in turns)
        return Session(
            id=self.id,
            format=self._form,
            source=self._source,
            turns=tuple(turns),
            after=tuple(self._waiting),
            orphans=tuple(orphans),
            files=tuple(self._files),
            notes=dict(+notes),
            meta=self.meta,
            **self._facts,
        )

    def _path(self) -> set[str]:
        path: set[str] = set()
        node = self._last_node
        while node and node not in path:
            path.add(node)
            node = self._parents.get(node, "")
        return path

    def close(self) -> None:
        """Count what can be told only at the end."""
        self.note("orphan_results", len(self._orphans) + len(self._early))
        waiting = sum(not entry.answered for entry in self._calls.values())
        self.note("unanswered_calls", waiting)
