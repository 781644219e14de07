"""Adapters x harnesses, and adapters x domains: where does a gain carry over?

A matrix is a set of paired comparisons with one reference arm. What was planned stands in the
store's fact `matrix`; everything here follows from that fact and the sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_adapters.evaluation.pairs import select
from harness_adapters.evaluation.results import Comparison, Row
from harness_adapters.records import Phase, Rollout


@dataclass(frozen=True, slots=True)
class MatrixArm:
    """One adapter (or the base) of a matrix."""

    label: str
    adapter: str
    """Name that the engine serves it under: it names the weights."""
    path: str | None
    trained_in: str | None = None
    """The harness of its training; None where nothing says."""
    unseen: list[str] = field(default_factory=list[str])
    """Families of the tasks that its training had nothing of."""
    checked: bool = True
    """Whether it is known what it was trained on, so that held-out could be checked."""


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """What was planned: the store's fact `matrix`."""

    arms: list[MatrixArm]
    """The first is the reference."""
    harnesses: list[str]
    tasks: list[str]
    attempts: int
    temperature: float

    @classmethod
    def from_fact(cls, fact: Mapping[str, Any]) -> MatrixPlan:
        """Read what `dataclasses.asdict` made of one."""
        arms = [MatrixArm(**arm) for arm in fact["arms"]]
        return cls(**{**fact, "arms": arms})

    @property
    def reference(self) -> MatrixArm:
        """What the others are compared with."""
        return self.arms[0]

    @property
    def others(self) -> list[MatrixArm]:
        """All but the reference."""
        return self.arms[1:]

    @property
    def sessions(self) -> int:
        """How many the whole plan has."""
        return len(self.arms) * len(self.harnesses) * len(self.tasks) * self.attempts


@dataclass(frozen=True, slots=True)
class Cell:
    """One adapter in one harness, against the reference in the same."""

    arm: str
    harness: str
    trained_here: bool
    comparison: Comparison | None
    """None while there is no whole pair."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """All cells of a plan, and its sessions so far."""

    plan: MatrixPlan
    cells: list[Cell]
    """By arm, then by harness."""
    scored: int
    """Sessions of the plan that have a score."""

    def domains(self) -> dict[tuple[str, str], list[Row]]:
        """(arm, harness) -> one row per family."""
        return {
            (cell.arm, cell.harness): cell.comparison.families
            for cell in self.cells
            if cell.comparison is not None
        }


def matrix_of(plan: MatrixPlan, rollouts: Iterable[Rollout]) -> Matrix:
    """Compare what was played so far."""
    from harness_adapters.evaluation.compare import summarise

    wanted = set(plan.tasks)
    sessions = [r for r in rollouts if r.phase is Phase.TEST and r.task in wanted]
    cells: list[Cell] = []
    for arm in plan.others:
        for harness in plan.harnesses:
            selection = select(
                [r for r in sessions if r.harness == harness and r.attempt < plan.attempts],
                base=plan.reference.label,
                treatment=arm.label,
                unseen_families=arm.unseen,
                played={plan.reference.label: plan.reference.adapter, arm.label: arm.adapter},
                temperature=plan.temperature,
            )
            comparison = summarise(selection) if selection.quoted else None
            cells.append(Cell(arm.label, harness, arm.trained_in == harness, comparison))
    return Matrix(plan, cells, _scored(plan, sessions))


def _scored(plan: MatrixPlan, sessions: Iterable[Rollout]) -> int:
    names = {arm.label: arm.adapter for arm in plan.arms}
    return len(
        {
            (r.arm, r.harness, r.task, r.attempt)
            for r in sessions
            if r.reward is not None
            and r.harness in plan.harnesses
            and r.attempt < plan.attempts
            and names.get(r.arm) == r.adapter
            and abs(r.temperature - plan.temperature) < 1e-9
        }
    )
