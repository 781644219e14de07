"""The transfer matrix: adapters x harnesses, and adapters x domains, as heat maps and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_adapters.evaluation.headline import points
from harness_adapters.evaluation.matrix import Matrix
from harness_adapters.evaluation.statistics import Estimate
from harness_adapters.report.markup import cell, minus, section, table
from harness_adapters.report.markup import points as interval
from harness_adapters.report.svg import drawing, rect, responsive, safe, text

FULL = 0.3
"""A difference of so much has the strongest colour."""
STEPS = 4
"""Shades on each side of none; their CSS classes are `gain1` … and `loss1` …."""


@dataclass(frozen=True, slots=True)
class Heat:
    """One square: the estimate, None where nothing was played, and whether to frame it."""

    estimate: Estimate | None
    framed: bool = False


def heat_map(
    title: str, rows: Sequence[tuple[str, Sequence[Heat]]], columns: Sequence[str], width: int
) -> str:
    """Differences in points, their intervals below; pale where the interval holds 0."""
    left = 190 if width > 500 else 110
    wide = (width - left) / max(1, len(columns))
    high, top = 44, 30
    parts: list[str] = []
    limit = max(3, int(wide / 7))
    for index, name in enumerate(columns):
        middle = left + wide * (index + 0.5)
        parts.append(text(round(middle, 1), 18, _short(name, limit), style="tick", anchor="middle"))
    for place, (name, squares) in enumerate(rows):
        y = top + place * (high + 4)
        parts.append(text(0, y + high / 2 + 4, _short(name, left // 8), style="label"))
        for index, heat in enumerate(squares):
            parts += _square(
                heat, left + wide * index, y, wide - 4, high, f"{name}, {columns[index]}"
            )
    return drawing(width, top + len(rows) * (high + 4), title, parts)


def _square(heat: Heat, x: float, y: float, width: float, height: float, name: str) -> list[str]:
    style = f"heat {shade(heat.estimate)}" + (" framed" if heat.framed else "")
    if heat.estimate is None:
        hint = f"{name}: not played"
        return [rect(round(x, 1), y, width, height, style, hint=hint, round_=4)]
    value = minus(f"{round(100 * heat.estimate.value):+d}")
    shown = interval(heat.estimate.interval)
    hint = f"{name}: {value} {shown} points on {heat.estimate.clusters} tasks"
    middle = round(x + width / 2, 1)
    parts = [rect(round(x, 1), y, width, height, style, hint=hint, round_=4)]
    parts.append(text(middle, y + 19, value, style="strong", anchor="middle"))
    if width >= 7 * len(shown):
        parts.append(text(middle, y + 35, shown, style="tick", anchor="middle"))
    return parts


def shade(estimate: Estimate | None) -> str:
    """CSS class of a difference: `gain1` to `gain4`, `loss1` to `loss4`; `unsure` next to 0."""
    if estimate is None:
        return "nothing"
    if estimate.interval is None or 0.0 in estimate.interval:
        return "unsure"
    step = min(STEPS, 1 + int(abs(estimate.value) / FULL * STEPS))
    return f"{'gain' if estimate.value > 0 else 'loss'}{step}"


def harness_map(matrix: Matrix, width: int) -> str:
    """Adapters x harnesses; an adapter's own harness is framed."""
    rows = [
        (
            arm.label,
            [
                Heat(c.comparison.by_task if c.comparison else None, c.trained_here)
                for c in matrix.cells
                if c.arm == arm.label
            ],
        )
        for arm in matrix.plan.others
    ]
    return heat_map("Difference by adapter and harness", rows, matrix.plan.harnesses, width)


def domain_map(matrix: Matrix, width: int) -> str:
    """Families x (adapter in harness); families that an adapter's training never saw are framed."""
    domains = matrix.domains()
    several = len(matrix.plan.harnesses) > 1
    columns = [f"{arm} in {harness}" if several else arm for arm, harness in domains]
    families = sorted({row.family for rows in domains.values() for row in rows})
    rows: list[tuple[str, list[Heat]]] = []
    for family in families:
        squares: list[Heat] = []
        for found in domains.values():
            row = next((r for r in found if r.family == family), None)
            squares.append(Heat(row.difference if row else None, bool(row and row.unseen)))
        rows.append((family, squares))
    return heat_map("Difference by family", rows, columns, width)


def transfer(matrix: Matrix) -> str:
    """The section of an evaluation of several adapters or harnesses."""
    plan = matrix.plan
    unchecked = [arm.label for arm in plan.others if not arm.checked]
    note = (
        f"Points of pass@1 against {plan.reference.label} in the same harness, on the same tasks, "
        "with 95% intervals clustered by task. A frame marks the harness that an adapter was "
        "trained in. Where the interval holds 0 the square is grey, whatever its number."
    )
    if matrix.scored < plan.sessions:
        note += f" {matrix.scored:,} of {plan.sessions:,} sessions are played and scored."
    if unchecked:
        note += (
            f" Nothing says what {', '.join(unchecked)} was trained on: that these tasks are held "
            "out from it is not checked."
        )
    body = f'<p class="note">{safe(note)}</p>'
    body += responsive(lambda width: harness_map(matrix, width))
    lines = "".join(
        f"<tr><td>{safe(c.arm)}</td><td>{safe(c.harness)}</td>"
        + (
            cell(c.comparison.tasks)
            + cell(c.comparison.pairs)
            + cell(f"{c.comparison.base_rate.value:.0%}")
            + cell(f"{c.comparison.treatment_rate.value:.0%}")
            + cell(minus(points(c.comparison)))
            if c.comparison is not None
            else cell(0) * 2 + cell("") * 3
        )
        + "</tr>"
        for c in matrix.cells
    )
    head = [
        "adapter",
        "harness",
        ">tasks",
        ">pairs",
        f">{plan.reference.label}",
        ">adapter",
        ">difference",
    ]
    body += table(head, lines, plain=True)
    if matrix.domains():
        body += (
            "<h3>By family</h3>"
            '<p class="note">Framed: families that the adapter\'s training had no task of.</p>'
        )
        body += responsive(lambda width: domain_map(matrix, width))
    return section("transfer", "Transfer", body)


def _short(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 1]}…"
