"""What came out of a sweep: each cell against the base and against the first cell.

Read from the directory alone, while cells still train as well as later. Where a cell was evaluated
beside the first one, both met each task next to each other in time; else in another evaluation, on
the same tasks with the same attempt seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness_adapters.evaluation.matrix import Matrix, MatrixArm, MatrixPlan, matrix_of
from harness_adapters.evaluation.pairs import matching, select
from harness_adapters.evaluation.results import Comparison
from harness_adapters.records import Phase, Rollout
from harness_adapters.store import Store
from harness_adapters.sweep.directory import Kept, cell_directory
from harness_adapters.sweep.grid import Axis
from harness_adapters.sweep.play import ARMS


@dataclass(frozen=True, slots=True)
class CellResult:
    """One row of the table."""

    name: str
    values: dict[str, str]
    steps: int
    """Training steps done."""
    of_steps: int | None
    """None before its run was opened."""
    best: int | None
    """Step of the adapter that validation chose."""
    sessions: int
    """Of its training, its validation included."""
    stopped: str | None
    """What ended its training."""
    evaluation: str | None
    """Where it was evaluated, below the sweep's directory; None before."""
    against_base: Comparison | None
    """None while there is no whole pair."""
    against_first: Comparison | None
    """None for the first cell itself, and while there is no whole pair."""
    beside_first: bool
    """Whether it was evaluated together with the first cell."""


@dataclass(frozen=True, slots=True)
class Table:
    """A sweep so far."""

    axes: list[Axis]
    cells: list[CellResult]
    played: int
    """Test sessions with a score."""
    planned: int
    """Test sessions of the evaluations that were begun."""

    @property
    def evaluated(self) -> int:
        """Cells that have a result."""
        return sum(cell.against_base is not None for cell in self.cells)


@dataclass(frozen=True, slots=True)
class _Played:
    """One cell's part of an evaluation."""

    place: str
    arm: MatrixArm
    plan: MatrixPlan
    against_base: Comparison | None
    sessions: list[Rollout]
    """Under the cell's name, whatever the evaluation's label was."""


def read_sweep(root: Path) -> Table:
    """Read the directory of a sweep. Raises StoreError where it isn't one."""
    kept = Kept.read(root)
    played: dict[str, _Played] = {}
    scored = planned = 0
    for place in sorted((root / "evaluations").glob("*/run.sqlite")):
        matrix, own = _evaluation(root, place.parent)
        if matrix is not None:
            scored, planned = scored + matrix.scored, planned + matrix.plan.sessions
            played |= own
    first = next(iter(kept.cells), "")
    cells = [_cell(root, kept, name, played.get(name), played.get(first)) for name in kept.cells]
    return Table(kept.axes, cells, scored, planned)


def _evaluation(root: Path, place: Path) -> tuple[Matrix | None, dict[str, _Played]]:
    store = Store.existing(place)
    try:
        fact, labels = store.fact("matrix"), store.fact(ARMS)
        rollouts = store.rollouts(phase=Phase.TEST, turns=False)
    finally:
        store.close()
    if not isinstance(fact, dict) or not isinstance(labels, dict):
        return None, {}
    plan = MatrixPlan.from_fact(fact)
    matrix = matrix_of(plan, rollouts)
    arms = {arm.label: arm for arm in plan.others}
    found = {}
    for name, label in labels.items():
        if label not in arms:
            continue
        arm = arms[label]
        compared = next((c.comparison for c in matrix.cells if c.arm == label), None)
        own = matching(rollouts, {label: arm.adapter}, plan.temperature)
        own = [r for r in own if r.task in set(plan.tasks) and r.attempt < plan.attempts]
        where = str(place.relative_to(root))
        sessions = [replace(r, arm=name) for r in own]
        found[name] = _Played(where, arm, plan, compared, sessions)
    return matrix, found


def _cell(
    root: Path, kept: Kept, name: str, own: _Played | None, first: _Played | None
) -> CellResult:
    steps, of_steps, best, sessions = _training(cell_directory(root, name))
    is_first = name == next(iter(kept.cells))
    return CellResult(
        name=name,
        values=kept.cells[name],
        steps=steps,
        of_steps=of_steps,
        best=best,
        sessions=sessions,
        stopped=kept.stopped.get(name),
        evaluation=own.place if own is not None else None,
        against_base=own.against_base if own is not None else None,
        against_first=(
            _against(first, own, next(iter(kept.cells)), name)
            if own is not None and first is not None and not is_first
            else None
        ),
        beside_first=own is not None and first is not None and own.place == first.place,
    )


def _training(root: Path) -> tuple[int, int | None, int | None, int]:
    """Steps done, steps planned, the best one, sessions."""
    if not (root / "run.sqlite").is_file():
        return 0, None, None, 0
    store = Store.existing(root)
    try:
        best = store.fact("best")
        settings = store.fact("settings") or {}
        rollouts = store.rollouts(turns=False)
        return (
            int(store.fact("trained_steps", 0)),
            (settings.get("train") or {}).get("steps"),
            int(best["step"]) if best else None,
            sum(r.phase in (Phase.TRAIN, Phase.VALIDATION) for r in rollouts),
        )
    finally:
        store.close()


def _against(first: _Played, own: _Played, first_name: str, name: str) -> Comparison | None:
    """The cell's adapter against the first cell's, on the tasks that both met."""
    from harness_adapters.evaluation.compare import summarise

    # Where the harness is the axis, a pair is the same task in two of them.
    sessions: Sequence[Rollout] = [
        *first.sessions,
        *(replace(r, harness=first.plan.harnesses[0]) for r in own.sessions),
    ]
    selection = select(
        sessions,
        base=first_name,
        treatment=name,
        unseen_families={*first.arm.unseen, *own.arm.unseen},
    )
    return summarise(selection) if selection.quoted else None
