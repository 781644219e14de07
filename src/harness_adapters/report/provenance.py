"""What was left out and how the run was made: the page's last sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness_adapters.evaluation.pairs import exclusion_reason
from harness_adapters.records import Phase
from harness_adapters.report.data import RunData
from harness_adapters.report.markup import cell, section, table
from harness_adapters.report.svg import safe


def endings(run: RunData) -> str:
    """Excluded sessions by reason, and how sessions ended."""
    reasons: Counter[tuple[str, str, str]] = Counter()
    ends: Counter[tuple[str, str, str]] = Counter()
    compared = {run.evaluation.base, run.treatment}
    for r in run.rollouts:
        ends[r.phase, r.arm, r.end] += 1
        if r.reward is None and not (r.phase is Phase.TEST and r.arm in compared):
            reasons[r.phase, r.arm, exclusion_reason(r)] += 1
    for e in run.selection.excluded:
        reasons[Phase.TEST, e.arm, e.reason] += e.sessions
    excluded = (
        '<p class="note">None: every session was scored and every pair is whole.</p>'
        if not reasons
        else '<p class="note">A session that infrastructure broke has no reward. It is left out, '
        "never counted as a failure; so is a pair of which one side is missing. Sessions that "
        "another adapter played under an arm's name, or at another temperature, belong to another "
        "comparison.</p>" + _counts(["phase", "arm", "reason"], reasons)
    )
    return section(
        "excluded",
        "Excluded sessions",
        excluded
        + "<details><summary>How all sessions ended</summary>"
        + _counts(["phase", "arm", "end"], ends)
        + "</details>",
    )


def _counts(head: list[str], counts: Counter[tuple[str, str, str]]) -> str:
    rows = "".join(
        "<tr>" + "".join(f"<td>{safe(part)}</td>" for part in names) + f"{cell(n)}</tr>"
        for names, n in sorted(counts.items())
    )
    return table([*head, ">sessions"], rows, plain=True)


def provenance(run: RunData) -> str:
    """Settings, versions, hashes, machine, time by phase."""
    timing = {k: f"{v / 60:.1f} min" for k, v in run.timing.items()}
    tables = [
        ("Machine and versions", run.environment),
        ("Data", run.dataset),
        ("Time", timing),
        ("Chosen adapter", run.best or {}),
        ("Warm start", _warm_start(run)),
        *((name.capitalize(), value) for name, value in run.facts.items()),
    ]
    shown = "".join(
        f"<div><h3>{safe(name)}</h3>{_facts(flat(value))}</div>" for name, value in tables if value
    )
    settings = _facts(flat(run.settings))
    details = (
        f"<details><summary>All settings</summary>{settings}</details>" if run.settings else ""
    )
    return section("made", "How it was made", f'<div class="tables">{shown}</div>{details}')


def _warm_start(run: RunData) -> dict[str, Any]:
    if run.warm is None:
        return {}
    return {
        "key": run.warm.key,
        "demonstrations": run.warm.demonstrations,
        "supervised steps": len(run.warm.losses),
    }


def flat(value: Any, prefix: str = "") -> list[tuple[str, str]]:
    """Nested JSON as (dotted key, text) rows; lists on one line."""
    if isinstance(value, dict):
        return [
            row
            for name, item in value.items()
            for row in flat(item, f"{prefix}.{name}" if prefix else str(name))
        ]
    if isinstance(value, list | tuple):
        value = ", ".join(str(v) for v in value)
    if isinstance(value, float):
        value = f"{value:.6g}"
    return [(prefix or "value", "none" if value is None else str(value))]


def _facts(rows: Iterable[tuple[str, str]]) -> str:
    body = "".join(
        f'<tr><td>{safe(name)}</td><td class="mono">{safe(value)}</td></tr>' for name, value in rows
    )
    return f'<div class="scroll"><table class="plain">{body}</table></div>'
