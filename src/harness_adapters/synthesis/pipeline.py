"""From trace files to a dataset: read, mine, clean, try the gates, write what is left.

Every session ends kept or with one reason code. What was worked out lies in `OUT/.synth`: the
journal, and the tasks that passed every gate; the dataset itself is made from these at the end, so
that a run which is interrupted goes on where it was.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness_adapters.errors import EngineError, SandboxError, StoreError, TaskError
from harness_adapters.progress import Reporter
from harness_adapters.synthesis import harbor
from harness_adapters.synthesis.assemble import Summary, assemble
from harness_adapters.synthesis.candidate import Candidate, CheckKind
from harness_adapters.synthesis.endpoint import Endpoint
from harness_adapters.synthesis.gates.duplicates import signature, text_of
from harness_adapters.synthesis.gates.lists import Decontamination
from harness_adapters.synthesis.gates.sequence import run_gates
from harness_adapters.synthesis.gates.strength import tidy
from harness_adapters.synthesis.gates.trial import Trial
from harness_adapters.synthesis.incoming import Incoming, Unreadable, incoming
from harness_adapters.synthesis.journal import (
    KEPT,
    CandidateRecord,
    GateRecord,
    Journal,
    SessionRecord,
)
from harness_adapters.synthesis.licences import Licences
from harness_adapters.synthesis.miners import Draft, Found, Lack, Miner, Refusal
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.privacy import PrivateError, cleaned
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.finding import check_names
from harness_adapters.synthesis.traces.session import Session
from harness_adapters.synthesis.writer import MENDABLE, TRIES, WEAK, WriterError, write

_ORDER = {reason: number for number, reason in enumerate(Reason)}
_INSTRUCTION_SHOWN = 4000
_RETRIED = {
    Reason.SANDBOX_FAILED,
    Reason.NEEDS_WRITER,
    Reason.WRITER_FAILED,
    Reason.GUESS_UNMEASURED,
    Reason.TOO_SLOW,
}
"""What says as much of the machine, or of what was given, as of the session."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to build."""

    licences: Licences = field(default_factory=Licences)
    decontamination: Decontamination = field(default_factory=Decontamination)
    endpoint: Endpoint | None = None
    workers: int = 2
    resume: bool = False


async def build(
    traces: Sequence[str],
    out: Path,
    miners: Sequence[Miner],
    options: Options,
    reporter: Reporter,
) -> Summary:
    """Write a dataset into `out`.

    Raises TraceError for a path in `traces` that isn't there, and StoreError where `out` isn't
    empty and nothing goes on.
    """
    check_names(traces)
    work = out / ".synth"
    if out.exists() and any(out.iterdir()) and not (options.resume and work.is_dir()):
        raise StoreError(
            f"{out}: exists and is not empty; choose another directory, or go on with --resume"
        )
    work.mkdir(parents=True, exist_ok=True)
    journal = Journal(work / "journal.jsonl")
    done = {record.key: record for record in journal.records()}
    finished = {key for key, record in done.items() if not _again(record)}
    reporter.phase("sessions", None)
    kept = sum(record.outcome == KEPT for record in done.values())
    known = {
        one.id: one
        for record in done.values()
        for one in record.candidates
        if one.id and one.reason not in _RETRIED
    }
    shop = _Shop(work, miners, options, known)
    async for record in _each(incoming(traces), finished, shop, options.workers):
        journal.add(record)
        kept += record.outcome == KEPT
        reporter.advance(1, f"{kept} kept")
    return await asyncio.to_thread(assemble, out, {each.key: each for each in journal.records()})


async def _each(
    found: Iterable[Incoming | Unreadable], finished: set[str], shop: _Shop, workers: int
) -> AsyncIterator[SessionRecord]:
    """Records as they are ready; at most `workers` sessions are in hand."""
    iterator = iter(found)
    running: set[asyncio.Task[SessionRecord]] = set()
    seen = set(finished)
    exhausted = False
    try:
        while True:
            while not exhausted and len(running) < workers:
                one = await asyncio.to_thread(_next, iterator)
                if one is None:
                    exhausted = True
                elif one.key not in seen:
                    seen.add(one.key)
                    running.add(asyncio.ensure_future(shop.work_on(one)))
            if not running:
                return
            ready, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for each in ready:
                yield each.result()
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _next(iterator: Iterator[Incoming | Unreadable]) -> Incoming | Unreadable | None:
    return next(iterator, None)


class _Shop:
    """Works on one session at a time for each worker."""

    def __init__(
        self,
        work: Path,
        miners: Sequence[Miner],
        options: Options,
        known: Mapping[str, CandidateRecord],
    ) -> None:
        self._known = known
        self._tasks = work / "tasks"
        self._trials = work / "trials"
        self._miners = miners
        self._options = options
        if self._trials.exists():
            shutil.rmtree(self._trials)

    async def work_on(self, one: Incoming | Unreadable) -> SessionRecord:
        """The session's record, whatever happens to it."""
        started = time.monotonic()
        licence = self._options.licences.of(one.path)
        if isinstance(one, Unreadable):
            return SessionRecord(
                one.key, one.path.name, "", one.key, "", licence, Reason.UNREADABLE, one.problem
            )
        session = one.session
        record = SessionRecord(
            key=one.key,
            source=one.path.name,
            session=session.id,
            group=session.parent or session.id,
            format=session.format,
            licence=licence,
            outcome=Reason.NO_WORK,
            detail="",
            turns=len(session.turns),
            calls=sum(1 for _ in session.calls()),
        )
        if refused := self._refused(session, licence):
            reason, detail = refused
            return replace(record, outcome=reason, detail=detail)
        endpoint = self._options.endpoint
        tokens = endpoint.tokens if endpoint else 0
        candidates = [each async for each in self._candidates(session, licence)]
        outcome, detail = _outcome(candidates)
        return replace(
            record,
            outcome=outcome,
            detail=detail,
            seconds=round(time.monotonic() - started, 2),
            tokens=endpoint.tokens - tokens if endpoint else 0,
            candidates=tuple(candidates),
        )

    def _refused(self, session: Session, licence: str) -> tuple[Reason, str] | None:
        """What ends a session before anything is looked for in it."""
        if not session.turns or not any(True for _ in session.requests()):
            return Reason.EMPTY, "no request or no turn"
        if not licence:
            return Reason.UNLICENSED, "no licence given; name it with --licence or --licences"
        named = (session.source, session.id, session.repository, *map(str, session.meta.values()))
        texts = [said.text for _, said in session.requests()]
        lists = self._options.decontamination
        found = lists.name_in(*named, *texts) or next(filter(None, map(lists.text_in, texts)), "")
        return (Reason.CONTAMINATED, f"found {found[:80]!r}") if found else None

    async def _candidates(self, session: Session, licence: str) -> AsyncIterator[CandidateRecord]:
        try:
            found = await asyncio.to_thread(self._mine, session, licence)
        except Exception as error:
            # One odd log must not end the work on thousands; the code says that it is ours.
            detail = f"{type(error).__name__}: {error}"[:300]
            yield CandidateRecord("", "", Reason.MINER_FAILED, detail)
        else:
            for one in found:
                if isinstance(one, Refusal):
                    yield CandidateRecord(one.type, "", one.reason, one.detail)
                elif isinstance(one, Draft):
                    yield await self._write(one)
                else:
                    yield await self._strengthened(one, await self._try(one))

    def _mine(self, session: Session, licence: str) -> list[Found]:
        line = Timeline(session)
        return [one for miner in self._miners for one in miner(line, licence)]

    async def _strengthened(self, one: Candidate, record: CandidateRecord) -> CandidateRecord:
        """What a model's further tests make of a candidate whose own tests are weak."""
        tests = one.check.kind is CheckKind.PYTHON_TESTS
        if self._options.endpoint is None or not tests or record.reason not in WEAK:
            return record
        complaint = f"{record.reason}: {record.detail}"
        found = await self._write(Draft(one, Lack.MORE_TESTS), complaint)
        return record if found.reason == Reason.WRITER_FAILED else found

    async def _write(self, draft: Draft, complaint: str = "") -> CandidateRecord:
        """Have a draft completed, and try what comes of it; the second time with the reason."""
        endpoint = self._options.endpoint
        refused = _record(draft.candidate)
        if endpoint is None:
            detail = f"a model would have to write its {draft.lacks}; give one with --writer"
            return replace(refused, reason=Reason.NEEDS_WRITER, detail=detail)
        for _ in range(TRIES):
            try:
                record = await self._try(await write(draft, endpoint, complaint))
                complaint = f"{record.reason}: {record.detail}"
            except WriterError as error:
                record = replace(refused, reason=Reason.WRITER_FAILED, detail=str(error))
                complaint = str(error)
            except EngineError as error:
                return replace(refused, reason=Reason.WRITER_FAILED, detail=str(error)[:300])
            if record.reason != Reason.WRITER_FAILED and record.reason not in MENDABLE:
                break
        return record

    async def _try(self, raw: Candidate) -> CandidateRecord:
        record = _record(raw)
        try:
            one, private = cleaned(tidy(raw))
        except PrivateError as error:
            return replace(record, reason=Reason.PERSONAL_DATA, detail=str(error))
        record = replace(
            record,
            id=one.id,
            instruction=one.instruction[:_INSTRUCTION_SHOWN],
            changed=tuple(sorted(one.after)),
        )
        if one.id in self._known:
            return self._known[one.id]
        place = self._trials / one.id
        try:
            if place.exists():
                shutil.rmtree(place)
            task = harbor.write(one, place)
            trial = Trial(one, task, self._options.decontamination, self._options.endpoint)
            passages = await run_gates(trial)
        except (TaskError, UnicodeDecodeError) as error:
            return replace(record, reason=Reason.STATE_UNKNOWN, detail=str(error)[:300])
        except SandboxError as error:
            return replace(record, reason=Reason.SANDBOX_FAILED, detail=str(error)[:300])
        gates = tuple(
            GateRecord(
                each.gate,
                each.verdict.reason or "",
                each.verdict.detail,
                each.seconds,
                each.verdict.facts,
            )
            for each in passages
        )
        last = passages[-1].verdict
        record = replace(record, gates=gates, scores=trial.scores, detail=last.detail)
        if last.reason is not None:
            shutil.rmtree(place)
            return replace(record, reason=last.reason)
        self._tasks.mkdir(exist_ok=True)
        if (self._tasks / one.id).exists():
            shutil.rmtree(self._tasks / one.id)
        place.rename(self._tasks / one.id)
        sign = signature(text_of(one)).tobytes().hex()
        return replace(record, signature=sign, detail=f"{private} private values replaced")


def _record(one: Candidate) -> CandidateRecord:
    """A candidate's record before anything was tried."""
    return CandidateRecord(
        type=one.type,
        id="",
        reason="",
        detail="",
        first_turn=one.provenance.first_turn,
        last_turn=one.provenance.last_turn,
        check=one.check.command or one.check.kind,
    )


def _again(record: SessionRecord) -> bool:
    """Whether a later run may come to something else."""
    return record.outcome in _RETRIED or any(one.reason in _RETRIED for one in record.candidates)


def _outcome(candidates: Sequence[CandidateRecord]) -> tuple[str, str]:
    """Kept, or the reason of whatever came furthest."""
    if any(not one.reason for one in candidates):
        return KEPT, ""
    if not candidates:
        return Reason.NO_WORK, "nothing that a program can verify"
    last = max(candidates, key=lambda one: _ORDER[Reason(one.reason)])
    return last.reason, last.detail
