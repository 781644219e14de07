"""The cost ledger: what sessions took, and what that costs by the user's own prices.

Engine seconds of sessions overlap: an engine serves many at once. So an hour of engine is charged
by the clock, while at least one session of a phase ran, and shared out among its arms by their
engine seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness_adapters.config import PriceSettings
from harness_adapters.evaluation.compare import busy_seconds
from harness_adapters.evaluation.pairs import solved
from harness_adapters.evaluation.results import Comparison
from harness_adapters.records import Rollout
from harness_adapters.store import Usage

BETWEEN = "between sessions"
"""Updates of the weights, starting engines, waiting: the run's time without a session."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the sessions of one phase, harness and arm took."""

    phase: str
    harness: str
    arm: str
    sessions: int
    solved: int
    engine_seconds: float
    """Sum over turns; turns of different sessions overlap."""
    prompt_tokens: int
    cached_tokens: int
    """Of the prompt tokens: those that the engine's prefix cache held."""
    output_tokens: int
    cpu_seconds: float
    """Of the sandboxes, where a cgroup measured it."""
    session_seconds: float
    """Sum of the sessions' wall times."""
    clock_seconds: float
    """Its share of the time while sessions of this phase ran."""
    dollars: float | None
    """None where no price is set."""

    @property
    def dollars_per_session(self) -> float | None:
        """None where no price is set, or nothing was played."""
        return _per(self.dollars, self.sessions)

    @property
    def dollars_per_solved(self) -> float | None:
        """None where no price is set, or nothing was solved."""
        return _per(self.dollars, self.solved)


@dataclass(frozen=True, slots=True)
class Ledger:
    """All entries of a run, and its sums."""

    entries: list[Entry]
    total: Entry
    dollars_per_point: float | None
    """The whole run's dollars by points of pass@1 gained; None where none was gained."""

    def by_phase(self) -> list[Entry]:
        """One entry per phase."""
        phases = list(dict.fromkeys(e.phase for e in self.entries))
        return [_sum([e for e in self.entries if e.phase == p], phase=p) for p in phases]


def ledger(
    rollouts: Sequence[Rollout],
    usage: Mapping[str, Usage],
    price: PriceSettings,
    *,
    seconds: float = 0.0,
    comparison: Comparison | None = None,
) -> Ledger:
    """The ledger of a run that took `seconds` in all; `usage` by rollout id."""
    entries: list[Entry] = []
    clock = 0.0
    for phase in dict.fromkeys(r.phase for r in rollouts):
        own = [r for r in rollouts if r.phase is phase]
        busy = busy_seconds(own)
        clock += busy
        engine = sum(_used(usage, r).engine_seconds for r in own)
        groups: dict[tuple[str, str], list[Rollout]] = {}
        for r in own:
            groups.setdefault((r.harness, r.arm), []).append(r)
        for (harness, arm), sessions in sorted(groups.items()):
            took = sum(_used(usage, r).engine_seconds for r in sessions)
            share = took / engine if engine else len(sessions) / len(own)
            entry = _entry(str(phase), harness, arm, sessions, usage, busy * share)
            entries.append(replace(entry, dollars=_dollars(entry, price)))
    rest = max(0.0, seconds - clock)
    if rest > 0:
        entry = _entry(BETWEEN, "", "", [], usage, rest)
        entries.append(replace(entry, dollars=_dollars(entry, price)))
    total = _sum(entries, phase="total")
    gained = 0.0 if comparison is None else 100 * comparison.by_task.value
    return Ledger(entries, total, _per(total.dollars, gained) if gained > 0 else None)


def money(dollars: float) -> str:
    """$0.004, $0.35, $12."""
    if dollars >= 10:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 0.05 or dollars == 0 else f"${dollars:.2g}"


def _used(usage: Mapping[str, Usage], rollout: Rollout) -> Usage:
    return usage.get(rollout.id, Usage(0.0, 0, 0, 0))


def _entry(
    phase: str,
    harness: str,
    arm: str,
    sessions: Sequence[Rollout],
    usage: Mapping[str, Usage],
    clock: float,
) -> Entry:
    used = [_used(usage, r) for r in sessions]
    return Entry(
        phase=phase,
        harness=harness,
        arm=arm,
        sessions=len(sessions),
        solved=sum(1 for r in sessions if r.reward is not None and solved(r)),
        engine_seconds=sum(u.engine_seconds for u in used),
        prompt_tokens=sum(u.prompt_tokens for u in used),
        cached_tokens=sum(u.cached_tokens for u in used),
        output_tokens=sum(u.output_tokens for u in used),
        cpu_seconds=sum(r.timings.get("cpu", 0.0) for r in sessions),
        session_seconds=sum(r.seconds for r in sessions),
        clock_seconds=clock,
        dollars=None,
    )


def _sum(entries: Iterable[Entry], *, phase: str) -> Entry:
    parts = list(entries)
    priced = [e.dollars for e in parts if e.dollars is not None]
    return Entry(
        phase=phase,
        harness="",
        arm="",
        sessions=sum(e.sessions for e in parts),
        solved=sum(e.solved for e in parts),
        engine_seconds=sum(e.engine_seconds for e in parts),
        prompt_tokens=sum(e.prompt_tokens for e in parts),
        cached_tokens=sum(e.cached_tokens for e in parts),
        output_tokens=sum(e.output_tokens for e in parts),
        cpu_seconds=sum(e.cpu_seconds for e in parts),
        session_seconds=sum(e.session_seconds for e in parts),
        clock_seconds=sum(e.clock_seconds for e in parts),
        dollars=sum(priced) if priced else None,
    )


def _dollars(entry: Entry, price: PriceSettings) -> float | None:
    if not price.known:
        return None
    fresh = entry.prompt_tokens - entry.cached_tokens
    return (
        entry.clock_seconds / 3600 * price.engine_hour
        + entry.cpu_seconds / 3600 * price.cpu_hour
        + fresh / 1e6 * price.million_prompt
        + entry.cached_tokens / 1e6 * price.million_cached
        + entry.output_tokens / 1e6 * price.million_output
    )


def _per(dollars: float | None, count: float) -> float | None:
    return None if dollars is None or not count else dollars / count
