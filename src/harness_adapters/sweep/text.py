"""The table of a sweep in words: for the terminal, for a file, for the page."""

from __future__ import annotations

from harness_adapters.evaluation.headline import points
from harness_adapters.evaluation.results import Comparison
from harness_adapters.sweep.table import CellResult, Table

MANY = (
    "Each interval is for its own comparison: the best of several cells looks better than it is. "
    "Settings that were chosen here are to be confirmed on tasks that were not part of the choice."
)
"""What every table with several cells has to say."""

HEAD = ("cell", "trained", "best step", "pass@1", "against the base", "against the first", "calls")


def rows(table: Table) -> list[tuple[str, ...]]:
    """The cells as words, by `HEAD`."""
    return [_row(cell, first=place == 0) for place, cell in enumerate(table.cells)]


def summary(table: Table) -> str:
    """One sentence: how far it has come, or which cell is ahead and how sure that is."""
    over = " x ".join(axis.key for axis in table.axes)
    count = len(table.cells)
    cells = "1 cell" if count == 1 else f"{count} cells"
    stopped = sum(cell.stopped is not None for cell in table.cells)
    end = f", {stopped} stopped" if stopped else ""
    waiting = any(c.against_base is None and c.stopped is None for c in table.cells)
    if waiting or not table.evaluated or table.played < table.planned:
        trained = sum(cell.steps == cell.of_steps for cell in table.cells)
        return f"{over}: {trained} of {cells} trained, {table.evaluated} with a result{end}"
    best = max(table.cells, key=_gain)
    against = best.against_base
    assert against is not None
    return (
        f"{over}: {cells}, {best.name} ahead: {against.base_rate.value:.0%} -> "
        f"{against.treatment_rate.value:.0%}, {points(against)} points pass@1 against the base on "
        f"{against.tasks} held-out tasks{_lead(best)}{end}"
    )


def as_text(table: Table) -> str:
    """The table in columns, then what is to be said of it."""
    lines = [HEAD, *rows(table)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    notes = [f"{cell.name}: stopped: {cell.stopped}" for cell in table.cells if cell.stopped]
    return "\n".join(
        [*shown, *notes, "", summary(table), *([MANY] if len(table.cells) > 1 else [])]
    )


def _row(cell: CellResult, *, first: bool) -> tuple[str, ...]:
    trained = "-" if cell.of_steps is None else f"{cell.steps} of {cell.of_steps} steps"
    c = cell.against_base
    return (
        cell.name,
        f"{trained}, stopped" if cell.stopped else trained,
        "-" if cell.best is None else str(cell.best),
        "-" if c is None else f"{c.base_rate.value:.0%} -> {c.treatment_rate.value:.0%}",
        points(c),
        "(the first)" if first else points(cell.against_first),
        "-" if c is None else f"{c.calls.base:.1f} -> {c.calls.treatment:.1f}",
    )


def _gain(cell: CellResult) -> float:
    return cell.against_base.by_task.value if cell.against_base is not None else float("-inf")


def _lead(best: CellResult) -> str:
    """How the best cell stands to the first, never more than the interval says."""
    against: Comparison | None = best.against_first
    if against is None:
        return " (it is the first)"
    interval = against.by_task.interval
    sure = interval is not None and 0.0 not in interval
    doubt = "" if sure else ", not distinguishable from none"
    return f"; {points(against)} against the first cell{doubt}"
