"""The page's sections as HTML; every value that comes from a run passes `safe`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness_adapters.evaluation.compare import pair_up
from harness_adapters.evaluation.results import Calls, Comparison, Row
from harness_adapters.evaluation.statistics import Estimate, Interval
from harness_adapters.records import Phase
from harness_adapters.report.charts import Outcome, Square, dumbbells, histogram, pair_grid, rates
from harness_adapters.report.data import RunData
from harness_adapters.report.markup import cell, minus, points, section, table
from harness_adapters.report.svg import responsive, safe

OUTCOMES = {
    Outcome.WON: "only the adapter",
    Outcome.BOTH: "both",
    Outcome.NEITHER: "neither",
    Outcome.LOST: "only the base",
}
"""Who solved a pair's task, in the key's words."""


def figures(run: RunData) -> str:
    """The four figures below the headline."""
    c = run.comparison
    phases = Counter(str(r.phase) for r in run.rollouts)
    cost = (
        f"{run.minutes:,.0f} min",
        ", ".join(f"{n:,} {phase}" for phase, n in phases.items()) + " sessions",
    )
    if c is None:
        return _figures([("Time so far", *cost)])
    won, lost = c.discordance.only_treatment, c.discordance.only_base
    doubt = "" if c.mcnemar is None else f"; exact McNemar p = {c.mcnemar:.2g}"
    calls = f"{c.calls.base:.2f} → {c.calls.treatment:.2f}"
    change = "" if c.calls.ratio is None else minus(f"{c.calls.ratio.value - 1:+.0%}, 95%")
    return _figures(
        [
            (
                "pass@1, difference in points",
                minus(f"{c.by_task.value * 100:+.1f}"),
                f"95% by task {points(c.by_task.interval)}; "
                f"by family {points(c.by_family.interval)}",
            ),
            ("Pairs won and lost", f"{won} to {lost}", f"of {c.pairs} pairs{doubt}"),
            ("Tool calls per session", calls, f"{change} {_ratio_points(c.calls)}".strip()),
            ("Whole run", *cost),
        ]
    )


def _figures(items: Sequence[tuple[str, str, str]]) -> str:
    return (
        '<dl class="figures">'
        + "".join(
            f'<div><dt>{safe(name)}</dt><dd class="big">{safe(big)}</dd>'
            f'<dd class="small">{safe(small)}</dd></div>'
            for name, big, small in items
        )
        + "</dl>"
    )


def result(run: RunData) -> str:
    """Raw model, warm start, adapter."""
    c = run.comparison
    text = {
        "raw": "The model as it comes, in the same agent, shown on fewer tasks.",
        "base": "After the warm start: a short supervised run on a scripted oracle's sessions. "
        "Reinforcement learning starts here and is measured against this."
        if run.warm_started
        else "The model without an adapter: what reinforcement learning is measured against.",
        "treatment": "The same weights with the adapter that reinforcement learning made"
        + (f", {run.best['adapter']}" if run.best and "adapter" in run.best else "")
        + ", chosen by the validation tasks.",
    }
    arms = "".join(f"<dt>{safe(a.name)}</dt><dd>{safe(text[a.style])}</dd>" for a in run.arms)
    body = responsive(lambda width: rates(run.arms, width)) + f'<dl class="arms">{arms}</dl>'
    if c is not None:
        body += _certainty(c)
    return section("result", "Raw model, base, adapter" if len(run.arms) > 2 else "Result", body)


def _certainty(c: Comparison) -> str:
    rows = [
        ("clustered by task", c.by_task),
        ("clustered by family and level", c.by_family_level),
        ("clustered by family", c.by_family),
    ]
    lines = "".join(
        f"<tr><td>{name}</td>{cell(points(e.interval))}{cell(points(e.bootstrap))}"
        f"{cell(e.clusters)}</tr>"
        for name, e in rows
    )
    sentences = [
        "Bars carry each arm's own interval. The difference is paired: the same tasks and seeds, "
        "both arms side by side in time, so its interval is the one to read."
    ]
    if c.detectable is not None:
        sentences.append(
            f"This evaluation finds a true difference of {c.detectable * 100:.0f} points "
            "four times in five."
        )
    if c.more_tasks:
        sentences.append(
            f"If the measured difference is the true one, about {c.more_tasks:,} more tasks would "
            "settle it."
        )
    passes = ""
    if len(c.pass_at) > 1:
        cells = "".join(
            f"<tr><td>pass@{k}</td>{cell(f'{b:.0%}')}{cell(f'{t:.0%}')}</tr>"
            for k, (b, t) in c.pass_at.items()
        )
        passes = table(["", f">{c.base}", f">{c.treatment}"], cells, plain=True)
    return (
        "<h3>How sure the difference is</h3>"
        f'<p class="note">{safe(" ".join(sentences))}</p>'
        + table(["95% interval, points", ">analytic", ">bootstrap", ">clusters"], lines, plain=True)
        + passes
    )


def paired(run: RunData, c: Comparison, places: dict[str, int]) -> str:
    """Every pair by who solved it, and each family from base to adapter."""
    d = c.discordance
    text = (
        f"Each square is one pair of sessions on the same task. Both arms solved {d.both}, neither "
        f"solved {d.neither}, the adapter alone {d.only_treatment}, the base alone "
        f"{d.only_base}. A square opens the adapter's session."
    )
    legend = "".join(f'<li><i class="pair {o}"></i>{name}</li>' for o, name in OUTCOMES.items())
    rows = squares(run, c, places)
    grid = responsive(lambda width: pair_grid(rows, width))
    families = responsive(lambda width: dumbbells(c.families, c.base, c.treatment, width))
    levels = responsive(lambda width: dumbbells(c.family_levels, c.base, c.treatment, width))
    return section(
        "tasks",
        "Task by task",
        f'<p>{safe(text)}</p><ul class="key">{legend}</ul>{grid}'
        f"<h3>Pass rate by family</h3>{key(run)}{families}"
        f"<details><summary>The same by family and level</summary>{levels}</details>",
    ) + section("families", "Families", _families(c))


def squares(run: RunData, c: Comparison, places: dict[str, int]) -> list[tuple[str, list[Square]]]:
    """The pair grid's rows: families in the tables' order, inside them by outcome."""
    chosen = (r for r in run.rollouts if r.phase is Phase.TEST and r.arm in (c.base, c.treatment))
    pairs, _ = pair_up(chosen, c.base, c.treatment)
    rows: dict[str, list[Square]] = {row.family: [] for row in c.families}
    order = list(Outcome)
    for pair in pairs:
        solved = bool(pair.base.correct), bool(pair.treatment.correct)
        outcome = {
            (False, True): Outcome.WON,
            (True, True): Outcome.BOTH,
            (True, False): Outcome.LOST,
            (False, False): Outcome.NEITHER,
        }[solved]
        place = places.get(pair.treatment.id)
        hint = f"{pair.task}, attempt {pair.base.attempt + 1}: {outcome}"
        link = "" if place is None else f"#session-{place}"
        rows[pair.family].append(Square(outcome, hint, link))
    return [(f, sorted(row, key=lambda s: order.index(s.outcome))) for f, row in rows.items()]


def key(run: RunData) -> str:
    """Which colour is which arm."""
    name = safe(run.treatment)
    return (
        f'<ul class="key"><li><i></i>base</li><li><i class="treatment"></i>adapter {name}</li></ul>'
    )


def _families(c: Comparison) -> str:
    body = ""
    for unseen, total in ((False, c.seen), (True, c.unseen)):
        rows = [r for r in c.families if r.unseen is unseen]
        if total is None:
            continue
        title = "Never met in training" if unseen else "Trained on (other instances)"
        body += f'<tr class="part"><th colspan="7">{title}</th></tr>'
        body += "".join(_family(r) for r in rows)
        if len(rows) > 1:
            body += _family(total, "total")
    head = ["family", ">tasks", f">{c.base}", f">{c.treatment}", ">difference", ">95%", ">calls"]
    return table(head, body) + (
        '<p class="note">Difference in points, interval clustered by task. Single families are '
        "small samples: read them together.</p>"
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


def tool_calls(run: RunData, c: Comparison) -> str:
    """Histogram of calls and the two paired figures."""
    test = [r for r in run.rollouts if r.phase is Phase.TEST and r.reward is not None]
    base = [r.calls for r in test if r.arm == c.base]
    treatment = [r.calls for r in test if r.arm == c.treatment]
    plot = responsive(lambda w: histogram(base, treatment, (c.base, c.treatment), w))
    rows = _calls_row("all pairs", c.calls)
    if c.calls_both_solved is not None:
        rows += _calls_row("pairs both solved", c.calls_both_solved)
    head = ["calls per session", ">pairs", f">{c.base}", f">{c.treatment}", ">change", ">95%"]
    note = (
        '<p class="note">The figure on pairs that both arms solved leaves out what the adapter '
        "won or lost; the one on all pairs is quoted.</p>"
    )
    return section("calls", "Tool calls", key(run) + plot + "<br>" + table(head, rows) + note)


def _calls_row(name: str, calls: Calls) -> str:
    change = "" if calls.ratio is None else minus(f"{calls.ratio.value - 1:+.0%}")
    return (
        f"<tr><td>{name}</td>{cell(calls.pairs)}{cell(f'{calls.base:.2f}')}"
        f"{cell(f'{calls.treatment:.2f}')}{cell(change)}{cell(_ratio_points(calls))}</tr>"
    )


def _ratio_points(calls: Calls) -> str:
    ratio: Estimate | None = calls.ratio
    if ratio is None or ratio.interval is None:
        return ""
    return points(Interval(ratio.interval.low - 1, ratio.interval.high - 1)) + "%"


def training(run: RunData, charts: dict[str, str]) -> str:
    """Training curves as small multiples."""
    if not charts:
        return ""
    kept = ""
    if run.best and "step" in run.best:
        kept = f" The dashed line marks the adapter that was kept, after step {run.best['step']}."
    text = (
        "By training step. Validation tasks are fixed and choose the adapter; they are never "
        f"trained on and never quoted.{kept} Mixed groups are the ones that teach: where all "
        "attempts succeed or all fail there is nothing to compare."
    )
    multiples = "".join(f'<div class="chart">{svg}</div>' for svg in charts.values())
    return section(
        "training", "Training", f'<p>{safe(text)}</p><div class="multiples">{multiples}</div>'
    )
