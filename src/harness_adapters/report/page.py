"""The report of a run: one HTML page that needs nothing else, its plots as files, results as JSON.

The page makes no request: style, script, plots and sessions are inside, and its content security
policy allows nothing but that one script (by hash). Session text is written as JSON and shown as
text nodes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path

from harness_adapters.evaluation.compare import plain, to_json
from harness_adapters.records import Phase
from harness_adapters.report import provenance, sections
from harness_adapters.report.charts import dumbbells, histogram, pair_grid, rates
from harness_adapters.report.data import RunData, read_run
from harness_adapters.report.embed import Embedded, embed
from harness_adapters.report.svg import WIDE, safe, standalone
from harness_adapters.report.training_charts import training_charts
from harness_adapters.store import Store

_ARMS_KEY = (("base", "fill-base"), ("adapter", "fill-treatment"))
_PAIRS_KEY = tuple((name, f"pair {outcome}") for outcome, name in sections.OUTCOMES.items())


def write_report(run_dir: Path) -> Path:
    """Write `report/index.html`, `report/plots/*.svg` and `report/results.json`; the page's path.

    Works on a run that isn't finished. Raises StoreError where `run_dir` isn't a run directory.
    """
    run = read_run(run_dir)
    store = Store.existing(run_dir)
    try:
        sessions = embed(store, run.rollouts)
    finally:
        store.close()
    charts = training_charts(run)
    folder = run_dir / "report"
    plots = folder / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    for stale in plots.glob("*.svg"):
        stale.unlink()
    keys = {"pairs": _PAIRS_KEY} | dict.fromkeys(("families", "family-levels", "calls"), _ARMS_KEY)
    for name, svg in {**_result_plots(run), **charts}.items():
        (plots / f"{name}.svg").write_text(standalone(svg, keys.get(name, ())), "utf-8")
    _replace(folder / "results.json", json.dumps(plain(_results(run)), indent=2) + "\n")
    page = folder / "index.html"
    _replace(page, _html(run, charts, sessions))
    return page


def _html(run: RunData, charts: dict[str, str], sessions: Embedded) -> str:
    style, script = _asset("chart.css") + _asset("page.css"), _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    c = run.comparison
    parts = [
        sections.result(run) if run.arms else "",
        sections.paired(run, c, sessions.places) if c else "",
        sections.tool_calls(run, c) if c else "",
        sections.training(run, charts),
        _replay(sessions),
        provenance.endings(run) if run.rollouts else "",
        provenance.provenance(run),
    ]
    title = f"{run.harness} adapter, {run.name}"
    data = "".join(
        f'<script type="application/json" id="session-{i}">{block}</script>'
        for i, block in enumerate(sessions.blocks)
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{safe(title)}</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the result</a>
<header class="top">
<p class="kicker">harness-adapters · {safe(run.name)}{safe(_finished(run))}</p>
<h1>{safe(run.headline().replace(" -> ", " → "))}</h1>
{sections.figures(run)}
</header>
<nav aria-label="Sections"><div class="links">{_links(parts)}</div></nav>
<main id="content">
{"".join(parts)}
</main>
<footer>Rebuilt from the run directory by <code>harness-adapters report</code>. The plots lie beside
this page as SVG files, all figures in <code>results.json</code>.</footer>
<script type="application/json" id="sessions-index">{sessions.index}</script>
{data}
<script>{script}</script>
</body>
</html>
"""


def _links(parts: list[str]) -> str:
    names = {
        "result": "Result",
        "tasks": "Tasks",
        "families": "Families",
        "calls": "Tool calls",
        "training": "Training",
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


def _result_plots(run: RunData) -> dict[str, str]:
    c = run.comparison
    plots = {"result": rates(run.arms, WIDE)} if run.arms else {}
    if c is not None:
        test = [r for r in run.rollouts if r.phase is Phase.TEST and r.reward is not None]
        base = [r.calls for r in test if r.arm == c.base]
        treatment = [r.calls for r in test if r.arm == c.treatment]
        plots["pairs"] = pair_grid(sections.squares(run, c, {}), WIDE)
        plots["families"] = dumbbells(c.families, c.base, c.treatment, WIDE)
        plots["family-levels"] = dumbbells(c.family_levels, c.base, c.treatment, WIDE)
        plots["calls"] = histogram(base, treatment, (c.base, c.treatment), WIDE)
    return plots


def _results(run: RunData) -> dict[str, object]:
    """What `results.json` holds."""
    return {
        "headline": run.headline(),
        "comparison": None if run.comparison is None else to_json(run.comparison),
        "sessions": len(run.rollouts),
        "minutes": run.minutes,
        "best": run.best,
        "timing": run.timing,
        "settings": run.settings,
        "environment": run.environment,
        "dataset": run.dataset,
        **run.facts,
    }


def _asset(name: str) -> str:
    return files("harness_adapters.report").joinpath("assets", name).read_text("utf-8")


def _replace(path: Path, text: str) -> None:
    """Write whole or not at all: a page that is open in a browser never shows half."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)
