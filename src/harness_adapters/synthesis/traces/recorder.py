"""Where readers put what they find: the open sessions of one file."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

from harness_adapters.synthesis.traces.draft import Counts, Draft, Recent
from harness_adapters.synthesis.traces.session import Session

HELD = 128 << 20
"""Characters that all open sessions may hold together; the one untouched longest is closed then."""


class Recorder:
    """All sessions of one file while it is read."""

    def __init__(self, source: str, form: str, *, keep: bool, held: int = HELD) -> None:
        self.source, self.form, self._keep, self._held = source, form, keep, held
        self.counts = Counts()
        self.notes: Counter[str] = Counter()
        self._open: OrderedDict[str, Draft] = OrderedDict()
        self._ready: list[Session] = []
        self._closed: Recent = Recent()
        self._asked = 0
        self._wholes = 0

    def draft(self, identity: str) -> Draft:
        """The open session of this id."""
        draft = self._open.get(identity)
        if draft is None:
            draft = self._open[identity] = Draft(identity, self.form, self.source, self._keep)
            if identity in self._closed:
                draft.note("continued")
                draft.counts.sessions = 0
        elif len(self._open) > 1:
            self._open.move_to_end(identity)
        return draft

    def whole(self, identity: str) -> Draft:
        """A session of its own for a record that holds a whole one, whatever its id repeats."""
        self._wholes += 1
        unique = identity or str(self._wholes)
        if unique in self._open or unique in self._closed:
            unique = f"{unique}#{self._wholes}"
        return self.draft(unique)

    def broken(self, reason: str = "") -> None:
        """A line or record that can't be read."""
        self.counts.broken_lines += 1
        if reason:
            self.notes[reason] += 1

    def close(self, identity: str) -> None:
        """Nothing more will come of this session."""
        draft = self._open.pop(identity, None)
        if draft is None:
            return
        self._closed[identity] = True
        draft.close()
        self.counts.add(draft.counts)
        self.notes.update(draft.notes)
        if self._keep:
            self._ready.append(draft.build())

    def ready(self) -> Iterator[Session]:
        """Sessions that are complete, and those closed early because too much is held."""
        self._asked += 1
        if self._keep and self._asked % 64 == 0:
            while sum(draft.held for draft in self._open.values()) > self._held:
                self.close(next(iter(self._open)))
        while self._ready:
            yield self._ready.pop(0)

    def finish(self) -> Iterator[Session]:
        """Close everything."""
        for identity in list(self._open):
            self.close(identity)
        yield from self.ready()
