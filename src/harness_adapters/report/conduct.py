"""What the guard made of the sessions: who was blocked, by which rule, and who cheated."""

from __future__ import annotations

from typing import Any

from harness_adapters.records import Conduct, Rollout
from harness_adapters.report.data import RunData
from harness_adapters.report.markup import cell, section, table
from harness_adapters.report.svg import safe

_HEAD = ["phase", "arm", ">sessions", ">calls", ">blocked", ">malformed", ">flagged", ">cheats"]


def conduct(run: RunData) -> str:
    """The section; empty where no call was ever blocked, flagged or malformed."""
    if not run.verdicts and not any(_odd(r) for r in run.rollouts):
        return ""
    rows = "".join(
        f"<tr><td>{safe(phase)}</td><td>{safe(arm)}</td>" + "".join(map(cell, numbers)) + "</tr>"
        for (phase, arm), numbers in by_arm(run.rollouts).items()
    )
    rules = "".join(
        f"<tr><td>{safe(rule)}</td><td>{safe(goal)}</td><td>{safe(decision)}</td>{cell(calls)}</tr>"
        for (decision, rule, goal), calls in run.verdicts.most_common()
    )
    body = f'<p class="note">{safe(_words(run))}</p>' + table(_HEAD, rows, plain=True)
    if rules:
        body += "<h3>By rule</h3>" + table(["rule", "goal", "verdict", ">calls"], rules, plain=True)
    return section("guard", "What the guard saw", body)


def by_arm(rollouts: list[Rollout]) -> dict[tuple[str, str], list[int]]:
    """(phase, arm) -> sessions, calls, blocked and malformed calls, flagged sessions, cheats."""
    found: dict[tuple[str, str], list[int]] = {}
    for r in sorted(rollouts, key=lambda r: (r.phase, r.arm)):
        numbers = found.setdefault((r.phase, r.arm), [0] * 6)
        flagged, cheat = r.conduct is Conduct.FLAGGED, r.conduct is Conduct.CHEAT
        for place, n in enumerate((1, r.calls, r.blocked, r.malformed, flagged, cheat)):
            numbers[place] += n
    return found


def as_json(run: RunData) -> dict[str, Any]:
    """The same for `results.json`."""
    names = [head.lstrip(">") for head in _HEAD[2:]]
    return {
        "sessions": [
            {"phase": phase, "arm": arm, **dict(zip(names, numbers, strict=True))}
            for (phase, arm), numbers in by_arm(run.rollouts).items()
        ],
        "verdicts": [
            {"decision": decision, "rule": rule, "goal": goal, "calls": calls}
            for (decision, rule, goal), calls in run.verdicts.most_common()
        ],
    }


def _odd(rollout: Rollout) -> bool:
    clean = rollout.conduct is Conduct.CLEAN
    return bool(rollout.blocked or rollout.malformed) or not clean


def _words(run: RunData) -> str:
    settings = run.settings.get("guard") or {}
    text = (
        "Blocked calls never reached the agent; they and malformed ones cost reward and stay in "
        "training. A session is flagged when a call is, or when several blocked ones had one goal. "
        "A cheat went for the reward by foul means: it is solved nowhere in this report"
    )
    if settings.get("enforce", True):
        return text + " and scored 0."
    paid = sum(r.conduct is Conduct.CHEAT and (r.score or 0.0) >= 1.0 for r in run.rollouts)
    return (
        f"{text}. In this run verdicts only went on record: calls that a rule blocks were run, "
        f"and {paid:,} cheats were paid in full."
    )
