import json
import random
from pathlib import Path

import pytest

from harness_adapters.config import Settings
from harness_adapters.errors import StoreError
from harness_adapters.records import Phase, SessionEnd
from harness_adapters.report.data import read_run
from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .html_reader import Page, section_of
from .synthetic import make_rollout, make_run


def test_an_unfinished_evaluation_says_so(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", steps=1, groups=1, generations=2, tasks=6)
    store = Store(root)
    fact = store.fact("evaluation")
    store.set_fact("evaluation", fact | {"tasks": [*fact["tasks"], "csv_sum-9-999"]})
    store.close()
    assert read_run(root).unplayed == 1
    text = Page(write_report(root).read_text("utf-8")).text
    assert "The evaluation isn't finished: 1 task is still to be played." in text


def test_a_run_without_the_newer_facts(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", steps=1, groups=1, generations=2, tasks=6, facts=False)
    run = read_run(root)
    assert run.comparison is not None
    assert (run.warm, run.unplayed, run.sessions) == (None, 0, len(run.rollouts))
    assert "Warm start" not in Page(section_of(write_report(root).read_text(), "training")).text


def test_a_run_that_only_began(tmp_path: Path) -> None:
    root = tmp_path / "empty"
    Store(root).close()
    page = Page(write_report(root).read_text("utf-8"))
    assert "no held-out result yet" in page.text
    assert json.loads(page.scripts["sessions-index"]) == {"sessions": [], "texts": []}


def test_a_half_finished_run(tmp_path: Path) -> None:
    root = make_run(tmp_path / "half", steps=5, groups=2, generations=2, finished=False)
    with (root / "metrics.jsonl").open("a") as file:
        file.write('{"step": 5, "reward": NaN, "kl": null}\n{"step": 6, "rew')
    page = Page(write_report(root).read_text("utf-8"))
    steps = Settings().train.steps
    assert f"pi: 6 of {steps} training steps, validation" in page.text
    assert "no held-out result yet" in page.text
    assert "Pass rate" in page.text
    results = (root / "report" / "results.json").read_text()
    assert json.loads(results)["comparison"] is None
    assert "NaN" not in results


def test_minutes_of_a_part_that_is_still_going(tmp_path: Path) -> None:
    root = make_run(tmp_path / "half", steps=3, groups=2, generations=2, finished=False)
    store = Store(root)
    store.set_fact("timing", {"warm start": 0.1})
    store.close()
    # 12 sessions of 4.2 s, each begun 1.5 s after the one before; the warm start took 420 s.
    assert read_run(root).minutes * 60 == pytest.approx(420 + 11 * 1.5 + 4.2)


def test_one_side_of_the_evaluation_only(tmp_path: Path) -> None:
    root = tmp_path / "run"
    store = Store(root)
    for arm, end in (("base", SessionEnd.FINISHED), ("pi", SessionEnd.API_ERROR)):
        store.add(
            make_rollout(random.Random(0), phase=Phase.TEST, arm=arm, family="f", level=1,
                         instance=1, chance=1.0, started=0.0, end=end)
        )  # fmt: skip
    store.close()
    assert "no held-out result yet" in Page(write_report(root).read_text("utf-8")).text


def test_not_a_run_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())
