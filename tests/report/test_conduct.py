import dataclasses
import json
import random
from pathlib import Path

from harness_adapters.records import Conduct, Decision, Phase, Rollout, Verdict
from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .synthetic import make_rollout


def session(name: str, arm: str, verdicts: list[Verdict], **changes: object) -> Rollout:
    """A test session whose calls got these verdicts."""
    rollout = make_rollout(
        random.Random(name), phase=Phase.TEST, arm=arm, family="csv", level=1, instance=1,
        chance=1.0, mean_calls=6.0, started=0.0,
    )  # fmt: skip
    left = iter(verdicts)
    turns = [
        dataclasses.replace(
            turn,
            calls=[dataclasses.replace(c, verdict=next(left, c.verdict)) for c in turn.calls],
        )
        for turn in rollout.turns
    ]
    return dataclasses.replace(rollout, id=name, turns=turns, **changes)  # type: ignore[arg-type]


def test_verdicts_cheats_and_rules_are_in_page_and_results(tmp_path: Path) -> None:
    spy = Verdict(Decision.BLOCK, "hidden-tests", "not for the agent", "answers", Conduct.CHEAT)
    store = Store(tmp_path)
    store.add(session("a", "base", [Verdict(Decision.ALLOW, "effects")] * 9))
    store.add(
        session(
            "b",
            "pi",
            [spy] * 9,
            conduct=Conduct.CHEAT,
            blocked=3,
            score=0.0,
            correct=False,
            reward=0.0,
        )
    )
    store.close()
    page = write_report(tmp_path).read_text()
    assert '<section id="guard">' in page and '<a href="#guard">Guard</a>' in page
    assert "hidden-tests" in page and "and scored 0." in page
    [entry] = [
        line for line in page.split("<script") if '"arm":"pi"' in line and '"sessions"' in line
    ]
    assert '"guard":"cheat"' in entry
    guard = json.loads((tmp_path / "report" / "results.json").read_text())["guard"]
    by_arm = {row["arm"]: row for row in guard["sessions"]}
    assert (by_arm["pi"]["cheats"], by_arm["pi"]["blocked"], by_arm["base"]["cheats"]) == (1, 3, 0)
    [rule] = guard["verdicts"]
    assert (rule["decision"], rule["rule"], rule["goal"]) == ("block", "hidden-tests", "answers")


def test_where_nothing_happened_there_is_no_section(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(session("a", "base", [Verdict(Decision.ALLOW, "effects")] * 9))
    store.close()
    assert '<section id="guard">' not in write_report(tmp_path).read_text()


def test_hacks_that_were_paid_are_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.set_fact("settings", {"guard": {"policy": "default", "enforce": False}})
    store.add(session("b", "pi", [], conduct=Conduct.CHEAT, score=1.0, correct=False))
    store.close()
    assert "1 cheats were paid in full" in write_report(tmp_path).read_text()
