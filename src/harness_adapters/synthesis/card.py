"""The dataset's card: what is in it, where it is from, and what became of every session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from harness_adapters.synthesis.candidate import TaskType
from harness_adapters.synthesis.journal import KEPT, SessionRecord
from harness_adapters.synthesis.manifest import JSON_LINES, PARQUET
from harness_adapters.tasks import Split


def card(
    funnel: Mapping[str, int], sessions: Sequence[SessionRecord], splits: Sequence[Split]
) -> str:
    """Markdown with the front matter that the Hub reads."""
    licences = sorted({each.licence for each in sessions if each.outcome == KEPT})
    total = len(sessions)
    parts = [
        "---",
        *(["license:", *(f"- {name.lower()}" for name in licences)] if licences else []),
        *(["configs:", "- config_name: default", f"  data_files: {PARQUET}"] if splits else []),
        "tags:",
        "- harbor",
        "- agents",
        "- reinforcement-learning",
        "---",
        "",
        "# Tasks from agent sessions",
        "",
        f"{len(splits)} tasks in Harbor format from {total} recorded sessions, written by "
        "`harness-adapters synth`. Each passed every gate: nothing done scores 0, the session's "
        "own work scores 1, attempts that solve nothing score 0, and the hidden tests notice "
        "faults.",
        "",
        "```bash",
        "harness-adapters tasks validate .",
        "harness-adapters train RUN --set tasks.dataset=.",
        "harbor run -p train -a oracle",
        "```",
        "",
        "| split | tasks |",
        "|---|---|",
        *(f"| {split} | {splits.count(split)} |" for split in Split),
        "",
        "Tasks of one source session lie in one split.",
        "",
        "## By type",
        "",
        "| type | found | kept | verifier runs | sandbox minutes |",
        "|---|---|---|---|---|",
        *_by_type(sessions),
        "",
        "## What became of the sessions",
        "",
        "| outcome | sessions | share |",
        "|---|---|---|",
        *(f"| {name} | {count} | {count / total:.1%} |" for name, count in funnel.items()),
        "",
        f"Tokens asked of a model: {sum(each.tokens for each in sessions):,}.",
        "",
        "## Why candidates were dropped",
        "",
        "| type | reason | candidates |",
        "|---|---|---|",
        *_dropped(sessions),
        "",
        "## Sources",
        "",
        "| licence | format | sessions | with a task |",
        "|---|---|---|---|",
        *_sources(sessions),
        "",
        f"`{PARQUET}`, and as text `{JSON_LINES}`, name the source session, the licence and the "
        "measurements of each task.",
        "",
    ]
    return "\n".join(parts)


def _by_type(sessions: Sequence[SessionRecord]) -> list[str]:
    rows = []
    for kind in TaskType:
        found = [one for each in sessions for one in each.candidates if one.type == kind]
        kept = sum(not one.reason for one in found)
        minutes = sum(gate.seconds for one in found for gate in one.gates) / 60
        runs = sum(one.scores for one in found)
        rows.append(f"| {kind} | {len(found)} | {kept} | {runs} | {minutes:.1f} |")
    return rows


def _dropped(sessions: Sequence[SessionRecord]) -> list[str]:
    counts = Counter(
        (one.type or "-", one.reason) for each in sessions for one in each.candidates if one.reason
    )
    return [f"| {kind} | {reason} | {count} |" for (kind, reason), count in sorted(counts.items())]


def _sources(sessions: Sequence[SessionRecord]) -> list[str]:
    groups: dict[tuple[str, str], list[SessionRecord]] = {}
    for each in sessions:
        groups.setdefault((each.licence or "none", each.format or "unknown"), []).append(each)
    return [
        f"| {licence} | {kind} | {len(each)} | {sum(one.outcome == KEPT for one in each)} |"
        for (licence, kind), each in sorted(groups.items())
    ]
