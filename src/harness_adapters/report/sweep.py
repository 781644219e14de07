"""The report of a sweep: its table, intervals and families on one page, with links to each cell's.

Like a run's page it makes no request; it has no script at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from harness_adapters.evaluation.compare import plain
from harness_adapters.evaluation.headline import points
from harness_adapters.evaluation.results import Comparison
from harness_adapters.evaluation.statistics import Estimate
from harness_adapters.report.document import asset, policy, replace_file
from harness_adapters.report.markup import cell as figure
from harness_adapters.report.markup import minus, section
from harness_adapters.report.markup import table as table_of
from harness_adapters.report.page import write_report
from harness_adapters.report.svg import (
    Scale,
    dot,
    drawing,
    line,
    responsive,
    safe,
    standalone,
    text,
    ticks,
)
from harness_adapters.report.transfer import Heat, heat_map
from harness_adapters.sweep.directory import cell_directory
from harness_adapters.sweep.table import CellResult, Table, read_sweep
from harness_adapters.sweep.text import HEAD, MANY, as_text, rows, summary

Named = Sequence[tuple[str, Estimate | None]]


def write_sweep_report(root: Path) -> Path:
    """Write `report/index.html`, `results.json`, `results.txt`, plots, each cell's page; the path.

    Works on a sweep that isn't finished. Raises StoreError where `root` isn't a sweep.
    """
    table = read_sweep(root)
    for run in (*(cell_directory(root, c.name) for c in table.cells), *_evaluations(root, table)):
        if (run / "run.sqlite").is_file():
            write_report(run)
    folder = root / "report"
    (folder / "plots").mkdir(parents=True, exist_ok=True)
    for name, draw in _plots(table).items():
        (folder / "plots" / f"{name}.svg").write_text(standalone(draw(720)), "utf-8")
    results = {"summary": summary(table), **asdict(table)}
    replace_file(folder / "results.json", json.dumps(plain(results), indent=2) + "\n")
    replace_file(folder / "results.txt", as_text(table) + "\n")
    page = folder / "index.html"
    replace_file(page, _html(root, table))
    return page


def intervals(title: str, estimates: Named, width: int) -> str:
    """Differences in points with their 95% intervals; the line is none."""
    wide = width > 500
    left, right = (230, 110) if wide else (104, 100)
    ends = [0.0]
    for _, estimate in estimates:
        if estimate is not None:
            ends.append(estimate.value)
            ends += [estimate.interval.low, estimate.interval.high] if estimate.interval else []
    marks = ticks(min(ends), max(ends), 4 if wide else 3)
    across = Scale(marks[0], marks[-1], left + 8, width - right - 8)
    bottom = 30 + 30 * len(estimates)
    parts = [line(across(mark), 22, across(mark), bottom - 10, "grid") for mark in marks]
    parts += [
        text(across(mark), 14, _signed(mark), style="tick", anchor="middle") for mark in marks
    ]
    parts.append(line(across(0), 22, across(0), bottom - 10, "whisker"))
    for place, (name, estimate) in enumerate(estimates):
        parts += _interval(name, estimate, 40 + 30 * place, across, left, width)
    return drawing(width, bottom, title, parts)


def _interval(
    name: str, estimate: Estimate | None, y: float, across: Scale, left: int, width: int
) -> list[str]:
    limit = left // 7
    short = name if len(name) <= limit else f"{name[: limit - 1]}…"
    parts = [text(0, y + 4, short, style="label")]
    if estimate is None:
        return [*parts, text(width, y + 4, "no result yet", style="label muted", anchor="end")]
    shown = _signed(estimate.value)
    if estimate.interval is not None:
        low, high = estimate.interval.low, estimate.interval.high
        shown += minus(f" [{round(100 * low)}, {round(100 * high)}]")
        parts.append(line(across(low), y, across(high), y, "link"))
    hint = f"{name}: {shown} points on {estimate.clusters} tasks"
    parts.append(dot(across(estimate.value), y, "fill-treatment", hint=hint))
    return [*parts, text(width, y + 4, shown, style="label muted", anchor="end")]


def _signed(share: float) -> str:
    """A difference in points; none has no sign."""
    points_ = round(100 * share)
    return minus(f"{points_:+d}") if points_ else "0"


def _plots(table: Table) -> dict[str, Callable[[int], str]]:
    base = [(c.name, _estimate(c.against_base)) for c in table.cells]
    first = [(c.name, _estimate(c.against_first)) for c in table.cells[1:]]
    drawn: dict[str, Callable[[int], str]] = {
        "against-base": lambda width: intervals("Each cell against the base", base, width)
    }
    if first:
        title = f"Each cell against {table.cells[0].name}"
        drawn["against-first"] = lambda width: intervals(title, first, width)
    if any(cell.against_base for cell in table.cells):
        drawn["families"] = lambda width: _families(table, width)
    return drawn


def _estimate(comparison: Comparison | None) -> Estimate | None:
    return None if comparison is None else comparison.by_task


def _families(table: Table, width: int) -> str:
    """Families x cells, each against the base."""
    found = {
        cell.name: {row.family: row for row in cell.against_base.families}
        for cell in table.cells
        if cell.against_base is not None
    }
    families = sorted({family for own in found.values() for family in own})
    squares: list[tuple[str, list[Heat]]] = []
    for family in families:
        own = [rows_.get(family) for rows_ in found.values()]
        squares.append(
            (family, [Heat(r.difference if r else None, bool(r and r.unseen)) for r in own])
        )
    return heat_map("Difference by family", squares, list(found), width)


def _evaluations(root: Path, table: Table) -> list[Path]:
    return sorted({root / cell.evaluation for cell in table.cells if cell.evaluation})


def _html(root: Path, table: Table) -> str:
    plots = _plots(table)
    first = table.cells[0].name
    note = (
        "Every cell is a run of its own; the base and all cells that share it met the same "
        "held-out tasks with the same attempt seeds. Differences are in points of pass@1, with 95% "
        "intervals clustered by task."
    )
    apart = [c.name for c in table.cells if c.evaluation and not c.beside_first]
    if apart:
        note += (
            f" {', '.join(apart)}: evaluated apart from {first}, because base, agent, guard or "
            "budget differ; the tasks and seeds are the same, the time is not."
        )
    if table.played < table.planned:
        note += f" {table.played:,} of {table.planned:,} sessions are played and scored."
    many = f'<p class="note">{safe(MANY)}</p>' if len(table.cells) > 1 else ""
    body = f'<p class="note">{safe(note)}</p>{responsive(plots["against-base"])}{_table(table)}'
    parts = [section("cells", "Each cell against the base", body + many)]
    if "against-first" in plots:
        title = f"Against the first cell, {first}"
        parts.append(section("first", title, responsive(plots["against-first"])))
    if "families" in plots:
        hint = '<p class="note">Framed: families that the training had no task of.</p>'
        parts.append(section("families", "By family", hint + responsive(plots["families"])))
    parts.append(section("pages", "Every run's own page", _links(root, table)))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{safe(f"sweep, {root.resolve().name}")}</title>
<style>{asset("chart.css") + asset("page.css")}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the result</a>
<header class="top">
<p class="kicker">harness-adapters · sweep · {safe(root.resolve().name)}</p>
<h1>{safe(summary(table).replace(" -> ", " → "))}</h1>
</header>
<main id="content">
{"".join(parts)}
</main>
<footer>Rebuilt from the sweep's directory by <code>harness-adapters report</code>. The plots lie
beside this page as SVG files, all figures in <code>results.json</code>, the table in
<code>results.txt</code>.</footer>
</body>
</html>
"""


def _table(table: Table) -> str:
    head = [HEAD[0], *(f">{name}" for name in HEAD[1:])]
    body = "".join(
        f"<tr><td>{safe(name)}</td>"
        + "".join(figure(minus(value.replace("->", "→"))) for value in values)
        + "</tr>"
        for name, *values in rows(table)
    )
    return table_of(head, body) + _stops(table)


def _stops(table: Table) -> str:
    lines = [f"<li>{safe(c.name)}: {safe(c.stopped)}</li>" for c in table.cells if c.stopped]
    return f'<p class="note">Stopped:</p><ul>{"".join(lines)}</ul>' if lines else ""


def _links(root: Path, table: Table) -> str:
    """Relative links, so that the directory may be moved."""
    items = [_link(f"cells/{c.name}", _about(c)) for c in table.cells]
    for place in _evaluations(root, table):
        where = str(place.relative_to(root))
        members = ", ".join(c.name for c in table.cells if c.evaluation == where)
        items.append(_link(where, f"evaluation of {members}, with every session"))
    return f"<ul>{''.join(items)}</ul>"


def _link(place: str, name: str) -> str:
    return f'<li><a href="../{safe(place)}/report/index.html">{safe(name)}</a></li>'


def _about(cell: CellResult) -> str:
    values = ", ".join(f"{key} = {value}" for key, value in cell.values.items())
    result = f": {points(cell.against_base)} points" if cell.against_base else ""
    return f"{values}{result}; {cell.sessions:,} sessions of training"
