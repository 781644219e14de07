"""Which sessions a comparison is made of: whole pairs, by who played them, and what is left out.

An arm is a label *and* what played under it: the adapter's name and the temperature. Sessions of
another adapter that once had the same label are never mixed in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from harness_adapters.evaluation.results import Exclusion
from harness_adapters.records import Phase, Rollout


@dataclass(frozen=True, slots=True)
class Pair:
    """One attempt at one task by both arms, both scored."""

    base: Rollout
    treatment: Rollout

    @property
    def task(self) -> str:
        """The task both met."""
        return self.base.task

    @property
    def family(self) -> str:
        """The task's family."""
        return self.base.family

    @property
    def family_level(self) -> tuple[str, int]:
        """Family and difficulty."""
        return self.base.family, self.base.level


@dataclass(frozen=True, slots=True)
class Selection:
    """The sessions of a comparison."""

    base: str
    treatment: str
    unseen_families: frozenset[str]
    """Families that only the test split has."""
    quoted: list[Pair]
    """What the figures are over: families that training could meet, or all where none is."""
    apart: list[Pair]
    """Pairs of unseen families where other ones are quoted."""
    sessions: list[Rollout]
    """All sessions of both arms, those that aren't in a pair included."""
    excluded: list[Exclusion]


def select(
    rollouts: Iterable[Rollout],
    *,
    base: str,
    treatment: str,
    unseen_families: Collection[str] = (),
    phase: Phase = Phase.TEST,
    played: Mapping[str, str] | None = None,
    temperature: float | None = None,
) -> Selection:
    """The pairs of a phase. `played` (arm -> adapter name) and `temperature` say who counts."""
    labelled = [r for r in rollouts if r.phase == phase and r.arm in (base, treatment)]
    strangers = {r.id: reason for r in labelled if (reason := _stranger(r, played, temperature))}
    sessions = [r for r in labelled if r.id not in strangers]
    reasons = Counter((r.arm, strangers[r.id]) for r in labelled if r.id in strangers)
    pairs, excluded = _pair_up(sessions, base, treatment)
    unseen = frozenset(unseen_families)
    seen = [p for p in pairs if p.family not in unseen]
    return Selection(
        base=base,
        treatment=treatment,
        unseen_families=unseen,
        quoted=seen or pairs,
        apart=[p for p in pairs if p.family in unseen] if seen else [],
        sessions=sessions,
        excluded=[Exclusion(*key, n) for key, n in sorted((reasons + excluded).items())],
    )


def matching(
    rollouts: Iterable[Rollout], played: Mapping[str, str], temperature: float
) -> list[Rollout]:
    """The rollouts whose arm stands in `played` and that its adapter played at `temperature`."""
    return [r for r in rollouts if not _stranger(r, played, temperature)]


def exclusion_reason(rollout: Rollout) -> str:
    """Why a session without a reward is left out: how it ended, or that its score is unusable."""
    return "verifier" if rollout.end.scorable else str(rollout.end)


def solved(rollout: Rollout) -> bool:
    """Whether a scored session solved its task."""
    if rollout.correct is None:
        return (rollout.score or 0.0) >= 1.0
    return rollout.correct


def _stranger(
    rollout: Rollout, played: Mapping[str, str] | None, temperature: float | None
) -> str | None:
    """Why a session isn't one of the arm that its label names; None where it is."""
    if played is not None and played.get(rollout.arm) != rollout.adapter:
        return "another adapter"
    if temperature is not None and not math.isclose(rollout.temperature, temperature, abs_tol=1e-9):
        return "another temperature"
    return None


def _pair_up(
    rollouts: Iterable[Rollout], base: str, treatment: str
) -> tuple[list[Pair], Counter[tuple[str, str]]]:
    """Whole pairs in task order, and what was left out: (arm, reason) -> sessions."""
    reasons: Counter[tuple[str, str]] = Counter()
    scored: dict[tuple[str, str, int], dict[str, Rollout]] = {}
    for rollout in sorted(rollouts, key=lambda r: (r.started, r.id)):
        if rollout.reward is None:
            reasons[rollout.arm, exclusion_reason(rollout)] += 1
            continue
        sides = scored.setdefault((rollout.harness, rollout.task, rollout.attempt), {})
        # A repeated session never replaces the first: nobody can run until the result pleases.
        if rollout.arm in sides:
            reasons[rollout.arm, "repeated"] += 1
        else:
            sides[rollout.arm] = rollout
    pairs: list[Pair] = []
    for _, sides in sorted(scored.items()):
        if len(sides) == 2:
            pairs.append(Pair(sides[base], sides[treatment]))
        else:
            reasons[next(iter(sides)), "no partner"] += 1
    return pairs, reasons
