"""The page's sections that look at pairs: task by task, tool calls, families never trained on.

Everything but the last section is over the pairs of the headline.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.evaluation.compare import Pair, solved
from harness_adapters.evaluation.results import Calls, Comparison, Row
from harness_adapters.report.charts import Outcome, Square, dumbbells, histogram, pair_grid
from harness_adapters.report.data import RunData
from harness_adapters.report.markup import (
    cell,
    change_interval,
    minus,
    points,
    section,
    table,
)
from harness_adapters.report.svg import responsive, safe

OUTCOMES = {
    Outcome.WON: "only the adapter",
    Outcome.BOTH: "both",
    Outcome.NEITHER: "neither",
    Outcome.LOST: "only the base",
}
"""Who solved a pair's task, in the key's words."""


def task_by_task(run: RunData, c: Comparison, places: dict[str, int]) -> str:
    """Every quoted pair by who solved it, and each family from base to adapter."""
    d = c.discordance
    text = (
        f"Each square is one pair of sessions on the same task. Both arms solved {d.both}, neither "
        f"solved {d.neither}, the adapter alone {d.only_treatment}, the base alone "
        f"{d.only_base}. A square opens the adapter's session."
    )
    return section(
        "tasks",
        "Task by task",
        f"<p>{safe(text)}</p>{_grid(run.selection.quoted, places)}"
        f"<h3>Pass rate by family</h3>{_by_family(run, c, apart=False)}",
    )


def unseen_families(run: RunData, c: Comparison, places: dict[str, int]) -> str:
    """Pairs of families that training never saw, where they aren't quoted; else nothing."""
    row = c.unseen
    if row is None or not run.selection.apart:
        return ""
    d = row.discordance
    text = (
        "Kinds of tasks of which training had none; they are no part of the headline or of any "
        f"figure above. {unseen_result(row)}. The adapter alone solved {d.only_treatment}, the "
        f"base alone {d.only_base} of {row.pairs} pairs; tool calls per session "
        f"{row.base_calls:.2f} → {row.treatment_calls:.2f}."
    )
    return section(
        "unseen",
        "Families that training never saw",
        f"<p>{safe(text)}</p>{_grid(run.selection.apart, places)}"
        f"<h3>Pass rate by family</h3>{_by_family(run, c, apart=True)}",
    )


def unseen_result(row: Row) -> str:
    """35% → 49%, +14 [2, 26] points on 12 tasks."""
    change = minus(f"{round(row.difference.value * 100):+d}")
    tasks = "1 task" if row.tasks == 1 else f"{row.tasks} tasks"
    return (
        f"{row.base.value:.0%} → {row.treatment.value:.0%}, {change} "
        f"{points(row.difference.interval)} points on {tasks}"
    )


def squares(pairs: Sequence[Pair], places: dict[str, int]) -> list[tuple[str, list[Square]]]:
    """The pair grid's rows: families by name, inside them by outcome."""
    rows: dict[str, list[Square]] = {family: [] for family in sorted({p.family for p in pairs})}
    order = list(Outcome)
    for pair in pairs:
        outcome = {
            (False, True): Outcome.WON,
            (True, True): Outcome.BOTH,
            (True, False): Outcome.LOST,
            (False, False): Outcome.NEITHER,
        }[solved(pair.base), solved(pair.treatment)]
        place = places.get(pair.treatment.id)
        hint = f"{pair.task}, attempt {pair.base.attempt + 1}: {outcome}"
        link = "" if place is None else f"#session-{place}"
        rows[pair.family].append(Square(outcome, hint, link))
    return [(f, sorted(row, key=lambda s: order.index(s.outcome))) for f, row in rows.items()]


def rows_of(run: RunData, rows: Sequence[Row], *, apart: bool) -> list[Row]:
    """Those of the rows whose pairs are quoted, or those that stand apart."""
    return [row for row in rows if (bool(run.selection.apart) and row.unseen) is apart]


def tool_calls(run: RunData, c: Comparison) -> str:
    """Histogram of calls and the two paired figures, on quoted pairs."""
    plot = responsive(lambda width: calls_histogram(run, c, width))
    rows = _calls_row("all pairs", c.calls)
    if c.calls_both_solved is not None:
        rows += _calls_row("pairs both solved", c.calls_both_solved)
    head = ["calls per session", ">pairs", f">{c.base}", f">{c.treatment}", ">change", ">95%"]
    note = (
        f'<p class="note">The same {c.pairs} pairs as in the headline. The figure on pairs that '
        "both arms solved leaves out what the adapter won or lost; the one on all pairs is "
        "quoted.</p>"
    )
    return section("calls", "Tool calls", _key(run) + plot + "<br>" + table(head, rows) + note)


def calls_histogram(run: RunData, c: Comparison, width: int) -> str:
    """Sessions of quoted pairs by their number of tool calls."""
    base = [p.base.calls for p in run.selection.quoted]
    treatment = [p.treatment.calls for p in run.selection.quoted]
    return histogram(base, treatment, (c.base, c.treatment), width)


def _grid(pairs: Sequence[Pair], places: dict[str, int]) -> str:
    legend = "".join(f'<li><i class="pair {o}"></i>{name}</li>' for o, name in OUTCOMES.items())
    rows = squares(pairs, places)
    return f'<ul class="key">{legend}</ul>' + responsive(lambda width: pair_grid(rows, width))


def _by_family(run: RunData, c: Comparison, *, apart: bool) -> str:
    """Dumbbells by family, the same by level, and the table."""
    families = rows_of(run, c.families, apart=apart)
    levels = rows_of(run, c.family_levels, apart=apart)
    total = c.unseen if apart or c.seen is None else c.seen
    plot = responsive(lambda width: dumbbells(families, c.base, c.treatment, width))
    details = responsive(lambda width: dumbbells(levels, c.base, c.treatment, width))
    body = "".join(_family(row) for row in families)
    if len(families) > 1 and total is not None:
        body += _family(total, "total")
    head = ["family", ">tasks", f">{c.base}", f">{c.treatment}", ">difference", ">95%", ">calls"]
    return (
        f"{_key(run)}{plot}<br>{table(head, body)}"
        '<p class="note">Difference in points, interval clustered by task. Single families are '
        "small samples: read them together.</p>"
        f"<details><summary>By family and level</summary>{details}</details>"
    )


def _family(row: Row, style: str = "") -> str:
    name = "together" if style else row.family
    change = round(row.difference.value * 100)
    difference = minus(f"{change:+d}") if change else "0"
    return (
        f'<tr class="{style}"><td>{safe(name)}</td>{cell(row.tasks)}'
        f"{cell(f'{row.base.value:.0%}')}{cell(f'{row.treatment.value:.0%}')}"
        f"{cell(difference)}{cell(points(row.difference.interval))}"
        f"{cell(f'{row.base_calls:.1f} → {row.treatment_calls:.1f}')}</tr>"
    )


def _calls_row(name: str, calls: Calls) -> str:
    change = "" if calls.ratio is None else minus(f"{calls.ratio.value - 1:+.0%}")
    return (
        f"<tr><td>{name}</td>{cell(calls.pairs)}{cell(f'{calls.base:.2f}')}"
        f"{cell(f'{calls.treatment:.2f}')}{cell(change)}{cell(change_interval(calls))}</tr>"
    )


def _key(run: RunData) -> str:
    """Which colour is which arm."""
    name = safe(run.treatment)
    return (
        f'<ul class="key"><li><i></i>base</li><li><i class="treatment"></i>adapter {name}</li></ul>'
    )
