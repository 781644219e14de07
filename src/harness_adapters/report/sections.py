"""The page's sections as HTML; every value that comes from a run passes `safe`."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.evaluation.results import Comparison, Rate
from harness_adapters.report.charts import rates
from harness_adapters.report.data import RawSample, RunData, WarmStart
from harness_adapters.report.markup import cell, change_interval, minus, points, section, table
from harness_adapters.report.paired import unseen_result
from harness_adapters.report.svg import responsive, safe


def figures(run: RunData) -> str:
    """The four figures below the headline."""
    c = run.comparison
    cost = (
        f"{run.minutes:,.0f} min",
        ", ".join(f"{n:,} {phase}" for phase, n in run.phases.items()) + " sessions",
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
            ("Tool calls per session", calls, f"{change} {change_interval(c.calls)}".strip()),
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


def scope(run: RunData) -> str:
    """What the headline is over, and what is missing from it."""
    c = run.comparison
    if c is None:
        return ""
    sentences: list[str] = []
    if c.seen is None:
        sentences.append("Training had tasks of none of these families.")
    elif c.unseen is not None:
        count = sum(row.unseen for row in c.families)
        families = "the 1 family" if count == 1 else f"the {count} families"
        sentences.append(
            f"The headline is over families that training had tasks of; {families} of this "
            "evaluation that training never saw are left out of it and "
            f'<a href="#unseen">shown apart</a>: {safe(unseen_result(c.unseen))}.'
        )
    if run.unplayed:
        tasks = "1 task is" if run.unplayed == 1 else f"{run.unplayed:,} tasks are"
        sentences.append(f"The evaluation isn't finished: {tasks} still to be played.")
    return f'<p class="note scope">{" ".join(sentences)}</p>' if sentences else ""


def result(run: RunData) -> str:
    """Raw model, warm start, adapter."""
    c = run.comparison
    text = {
        "raw": _raw(run.raw) if run.raw else "",
        "base": "After the warm start: a short supervised run on a scripted oracle's sessions. "
        "Reinforcement learning starts here and is measured against this."
        if run.warm_started
        else "The model without an adapter: what reinforcement learning is measured against.",
        "treatment": _adapter(run),
    }
    arms = "".join(f"<dt>{safe(a.name)}</dt><dd>{safe(text[a.style])}</dd>" for a in run.arms)
    body = responsive(lambda width: rates(run.arms, width)) + f'<dl class="arms">{arms}</dl>'
    if c is not None:
        body += _certainty(c)
    return section("result", "Raw model, base, adapter" if len(run.arms) > 2 else "Result", body)


def _raw(raw: RawSample) -> str:
    sample = f"{raw.tasks} held-out tasks"
    if raw.of_tasks is not None:
        sample = f"{raw.tasks} of the {raw.of_tasks} tasks"
    text = f"The model as it comes, in the same agent, on a sample: {sample}."
    if raw.base is not None and raw.treatment is not None:
        text += (
            f" On these tasks the base solved {_share(raw.base)} sessions, the adapter "
            f"{_share(raw.treatment)}."
        )
    return text


def _share(rate: Rate) -> str:
    return f"{rate.solved} of {rate.sessions}"


def _adapter(run: RunData) -> str:
    best = str((run.best or {}).get("adapter", ""))
    played = (run.evaluation.played or {}).get(run.treatment, best)
    if played != best:
        return f"The same weights with another adapter than the run's own: {played}."
    name = f", {best}" if best else ""
    return (
        f"The same weights with the adapter that reinforcement learning made{name}, chosen by the "
        "validation tasks."
    )


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


def training(run: RunData, charts: dict[str, str], warm_chart: str) -> str:
    """Training curves as small multiples, and what the warm start took."""
    body = ""
    if charts:
        kept = ""
        if run.best and "step" in run.best:
            kept = (
                f" The dashed line marks the adapter that was kept, after step {run.best['step']}."
            )
        text = (
            "By training step. Validation tasks are fixed and choose the adapter; they are never "
            f"trained on and never quoted.{kept} Mixed groups are the ones that teach: where all "
            "attempts succeed or all fail there is nothing to compare."
        )
        multiples = "".join(f'<div class="chart">{svg}</div>' for svg in charts.values())
        body = f'<p>{safe(text)}</p><div class="multiples">{multiples}</div>'
    if run.warm is not None:
        body += _warm_start(run.warm, warm_chart)
    return section("training", "Training", body) if body else ""


def _warm_start(warm: WarmStart, chart: str) -> str:
    text = (
        f"{warm.demonstrations:,} sessions of a scripted oracle and {len(warm.losses):,} "
        f"supervised steps on them made the base in {warm.seconds / 60:,.0f} minutes. They are "
        "counted in the whole run's sessions and minutes, also where they were found cached."
    )
    small = f'<div class="multiples"><div class="chart">{chart}</div></div>' if chart else ""
    return f"<h3>Warm start</h3><p>{safe(text)}</p>{small}"
