"""The report of a run: one HTML page that needs nothing else, its plots as files, results as JSON.

The page makes no request: style, script, plots and sessions are inside, and its content security
policy allows nothing but that one script (by hash). Session text is written as JSON and shown as
text nodes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from harness_adapters.evaluation.compare import plain, to_json
from harness_adapters.evaluation.headline import apart
from harness_adapters.records import Phase
from harness_adapters.report import costs, paired, provenance, sections, transfer
from harness_adapters.report.charts import dumbbells, pair_grid, rates
from harness_adapters.report.conduct import as_json, conduct
from harness_adapters.report.data import RunData, read_run
from harness_adapters.report.document import asset, policy, replace_file
from harness_adapters.report.embed import Embedded, embed
from harness_adapters.report.png import png
from harness_adapters.report.svg import WIDE, safe, standalone
from harness_adapters.report.training_charts import training_charts, warm_start_chart
from harness_adapters.store import Store

_NO_KEY: tuple[tuple[str, str], ...] = ()
_ARMS_KEY = (("base", "fill-base"), ("adapter", "fill-treatment"))
_PAIRS_KEY = tuple((name, f"pair {outcome}") for outcome, name in paired.OUTCOMES.items())


def write_report(run_dir: Path, *, pngs: bool = False) -> Path:
    """Write `report/index.html`, `report/plots/*` and `report/results.json`; the page's path.

    Every plot is a file as SVG and, with `pngs` (slow), as PNG. Works on a run that isn't finished.
    Raises StoreError where `run_dir` isn't a run directory.
    """
    run = read_run(run_dir)
    store = Store.existing(run_dir)
    try:
        sessions = embed(store, run.rollouts)
    finally:
        store.close()
    charts, warm = training_charts(run), warm_start_chart(run)
    folder = run_dir / "report"
    plots = folder / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    _write_plots(run, charts | ({"warm-start-loss": warm} if warm else {}), plots, pngs=pngs)
    replace_file(folder / "results.json", json.dumps(plain(_results(run)), indent=2) + "\n")
    page = folder / "index.html"
    replace_file(page, _html(run, charts, warm, sessions))
    return page


def _write_plots(run: RunData, charts: dict[str, str], plots: Path, *, pngs: bool) -> None:
    for stale in (*plots.glob("*.svg"), *plots.glob("*.png")):
        stale.unlink()
    drawn = {name: standalone(svg, key) for name, (svg, key) in _result_plots(run).items()}
    drawn |= {name: standalone(svg) for name, svg in charts.items()}
    for name, svg in drawn.items():
        (plots / f"{name}.svg").write_text(svg, "utf-8")
        if pngs:
            (plots / f"{name}.png").write_bytes(png(svg))


def render(run_dir: Path, *, live: str | None = None) -> str:
    """The page alone; with `live`, a version of the run, one that `watch` serves."""
    run = read_run(run_dir)
    store = Store.existing(run_dir)
    try:
        sessions = embed(store, run.rollouts)
    finally:
        store.close()
    return _html(run, training_charts(run), warm_start_chart(run), sessions, live)


def waiting_page(name: str, why: str, version: str) -> str:
    """What `watch` shows while there is no run to show."""
    script = asset("live.js")
    return f"""<!doctype html>
<html lang="en" data-version="{safe(version)}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy(script, live=True)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{safe(name)}</title>
<style>{asset("chart.css") + asset("page.css")}</style>
</head>
<body><header class="top"><p class="kicker">harness-adapters · {safe(name)}</p>
<h1>Nothing to show yet</h1><p class="note">{safe(why)}</p></header>
<script>{script}</script>
</body>
</html>
"""


def _html(
    run: RunData, charts: dict[str, str], warm: str, sessions: Embedded, live: str | None = None
) -> str:
    style, script = asset("chart.css") + asset("page.css"), asset("page.js")
    alive = "" if live is None else asset("live.js")
    allowed = policy(script, *([alive] if alive else []), live=live is not None)
    c = run.comparison
    parts = [
        sections.result(run) if run.arms else "",
        paired.task_by_task(run, c, sessions.places) if c else "",
        paired.tool_calls(run, c) if c else "",
        paired.unseen_families(run, c, sessions.places) if c else "",
        transfer.transfer(run.matrix) if run.matrix else "",
        sections.training(run, charts, warm),
        conduct(run),
        costs.cost(run.ledger) if run.rollouts else "",
        _replay(sessions),
        provenance.endings(run) if run.rollouts else "",
        provenance.provenance(run),
    ]
    title = f"{run.harness} adapter, {run.name}"
    data = "".join(
        f'<script type="application/json" id="session-{i}">{block}</script>'
        for i, block in enumerate(sessions.blocks)
    )
    version = "" if live is None else f' data-version="{safe(live)}"'
    now = "" if live is None else " · live"
    return f"""<!doctype html>
<html lang="en"{version}>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{allowed}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{safe(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the result</a>
<header class="top">
<p class="kicker">harness-adapters · {safe(run.name)}{safe(_finished(run))}{now}</p>
<h1>{_unbroken(safe(run.headline().replace(" -> ", " → ")))}</h1>
{sections.figures(run)}
{sections.scope(run)}
</header>
<nav aria-label="Sections"><div class="links">{_links(parts)}</div></nav>
<main id="content">
{"".join(parts)}
</main>
<footer>Rebuilt from the run directory by <code>harness-adapters report</code>. The plots lie beside
this page as SVG and PNG files, all figures in <code>results.json</code>.</footer>
<script type="application/json" id="sessions-index">{sessions.index}</script>
{data}
<script>{script}</script>
{f"<script>{alive}</script>" if alive else ""}
</body>
</html>
"""


def _unbroken(headline: str) -> str:
    """Keeps a line from ending after the hyphen of `held-out`."""
    return headline.replace("held-out", '<span class="whole">held-out</span>')


def _links(parts: list[str]) -> str:
    names = {
        "result": "Result",
        "tasks": "Tasks",
        "calls": "Tool calls",
        "unseen": "Unseen families",
        "transfer": "Transfer",
        "training": "Training",
        "guard": "Guard",
        "cost": "Cost",
        "sessions": "Sessions",
        "excluded": "Excluded",
        "made": "How it was made",
    }
    whole = "".join(parts)
    return "".join(
        f'<a href="#{anchor}">{name}</a>'
        for anchor, name in names.items()
        if f'<section id="{anchor}">' in whole
    )


def _replay(sessions: Embedded) -> str:
    phases = [
        f"{sessions.shown[p]:,} of {sessions.total[p]:,} {p}" for p in Phase if sessions.total[p]
    ]
    sampled = any(sessions.shown[p] < sessions.total[p] for p in Phase)
    sample = "; the samples are spread evenly over the run" if sampled else ""
    selects = "".join(
        f'<label>{name}<select data-filter="{name}"><option value="">all</option></select></label>'
        for name in ("phase", "arm", "family", "outcome", "guard")
    )
    return f"""<section id="sessions"><h2>Sessions, turn by turn</h2>
<p class="note">What the agent was told, what the model answered, what each call did and how it was
scored. This page holds {safe(", ".join(phases) or "no")} sessions{sample}. Long texts are
shortened; the run directory has everything.</p>
<noscript><p>Replaying sessions needs JavaScript; the page makes no request.</p></noscript>
<div class="filters">{selects}
<label>task<input type="search" data-filter="text" placeholder="part of its name"></label>
<output id="count"></output></div>
<div class="replay" id="replay">
<div id="list" role="listbox" tabindex="0" aria-label="Sessions"></div>
<div id="session" tabindex="0" role="region" aria-label="Session" aria-live="off">
<p class="note">Choose a session: click it, or move through the list with the arrow keys.</p></div>
</div></section>"""


def _finished(run: RunData) -> str:
    if not run.rollouts:
        return ""
    last = max(r.started + r.seconds for r in run.rollouts)
    moment = datetime.fromtimestamp(last, UTC)
    return f" · last session {moment:%-d %B %Y, %H:%M} UTC"


def _result_plots(run: RunData) -> dict[str, tuple[str, tuple[tuple[str, str], ...]]]:
    """Name -> drawing and the key of its colours."""
    plots = {"result": (rates(run.arms, WIDE), _NO_KEY)} if run.arms else {}
    if run.matrix is not None:
        plots["transfer"] = (transfer.harness_map(run.matrix, WIDE), _NO_KEY)
        if run.matrix.domains():
            plots["domains"] = (transfer.domain_map(run.matrix, WIDE), _NO_KEY)
    if (c := run.comparison) is None:
        return plots
    plots["calls"] = (paired.calls_histogram(run, c, WIDE), _ARMS_KEY)
    chosen = run.selection
    for end, pairs, is_apart in (("", chosen.quoted, False), ("-unseen", chosen.apart, True)):
        if not pairs:
            continue
        plots[f"pairs{end}"] = (pair_grid(paired.squares(pairs, {}), WIDE), _PAIRS_KEY)
        for name, rows in (("families", c.families), ("family-levels", c.family_levels)):
            rows = paired.rows_of(run, rows, apart=is_apart)
            plots[f"{name}{end}"] = (dumbbells(rows, c.base, c.treatment, WIDE), _ARMS_KEY)
    return plots


def _results(run: RunData) -> dict[str, object]:
    """What `results.json` holds."""
    return {
        "headline": run.headline(),
        "apart": None if run.comparison is None else apart(run.comparison),
        "comparison": None if run.comparison is None else to_json(run.comparison),
        "quoted_families": sorted({p.family for p in run.selection.quoted}),
        "unseen_families": sorted(run.selection.unseen_families),
        "raw": None if run.raw is None else asdict(run.raw),
        "warm_start": None if run.warm is None else asdict(run.warm),
        "matrix": None if run.matrix is None else asdict(run.matrix),
        "cost": asdict(run.ledger),
        "sessions": run.sessions,
        "sessions_by_phase": run.phases,
        "minutes": run.minutes,
        "guard": as_json(run),
        "best": run.best,
        "timing": run.timing,
        "settings": run.settings,
        "environment": run.environment,
        "dataset": run.dataset,
        **run.facts,
    }
