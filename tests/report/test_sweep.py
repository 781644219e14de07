import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.main import app
from harness_adapters.config import Settings
from harness_adapters.evaluation.statistics import Estimate, Interval
from harness_adapters.report.sweep import intervals, write_sweep_report
from harness_adapters.sweep.directory import SWEEP
from harness_adapters.sweep.grid import Axis

from .browser import browse
from .html_reader import Page, section_of
from .synthetic_sweep import make_sweep

BONUS = Axis("reward.bonus", ("0", "0.1", "0.3"))
EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    own = {"bonus-0": 12, "bonus-0.1": 18}
    root = tmp_path_factory.mktemp("sweeps") / "bonus"
    return make_sweep(root, BONUS, {"one": own}, stopped={"bonus-0.3": EVIL})


def test_the_page_holds_the_table_and_leads_to_every_run(root: Path) -> None:
    index = write_sweep_report(root)
    html = index.read_text("utf-8")
    page = Page(html)
    assert "reward.bonus: 3 cells, bonus-0.1 ahead: 50% → 90%, +40 [" in page.text
    assert "against the first cell, 1 stopped" in page.text
    for part in ("50% → 90%", "(the first)", "the best of several cells", "Against the first cell",
                 "By family", f"3 of {Settings().train.steps} steps, stopped"):  # fmt: skip
        assert part in page.text, part
    links = [a["href"] for t, a in page.tags if t == "a" and a.get("href", "").startswith("..")]  # type: ignore[union-attr]
    assert len(links) == 4
    assert all((index.parent / str(link)).is_file() for link in links)
    results = json.loads((root / "report" / "results.json").read_text())
    assert results["cells"][1]["against_first"]["by_task"]["value"] == pytest.approx(0.3)
    assert (root / "report" / "results.txt").read_text().startswith("cell ")
    plots = {file.stem: file.read_text() for file in (root / "report" / "plots").glob("*.svg")}
    assert set(plots) == {"against-base", "against-first", "families"}
    for plot in plots.values():
        ElementTree.fromstring(plot)
    assert "no result yet" in section_of(html, "cells")


def test_what_ended_a_cell_is_text_and_nothing_else(root: Path) -> None:
    page = Page(write_sweep_report(root).read_text("utf-8"))
    assert not any(t in ("img", "script") for t, _ in page.tags)
    assert "</script><img src=x onerror=alert(1)>\\x1b[31m" in page.text


def test_the_verb_report_knows_a_sweep(root: Path) -> None:
    result = CliRunner().invoke(app, ["report", str(root)])
    assert result.exit_code == 0, result.output
    assert result.output.strip().replace("\n", "").endswith("bonus/report/index.html")


def test_a_sweep_that_only_began(tmp_path: Path) -> None:
    root = make_sweep(tmp_path / "begun", BONUS, {})
    text = Page(write_sweep_report(root).read_text("utf-8")).text
    assert "reward.bonus: 0 of 3 cells trained, 0 with a result" in text
    assert "no result yet" in text
    assert (root / SWEEP).is_file()


def test_intervals_are_drawn_to_scale() -> None:
    estimates = [
        ("a", Estimate(0.2, 0.05, 19, Interval(0.1, 0.3), None, 20, 20)),
        ("b", Estimate(-0.1, float("nan"), 0, None, None, 1, 1)),
        ("c", None),
    ]
    svg = ElementTree.fromstring(intervals("t", estimates, 720))
    space = "{http://www.w3.org/2000/svg}"
    none = next(e for e in svg.iter(f"{space}line") if e.get("class") == "whisker")
    zero = float(none.get("x1") or 0)
    dots = [float(e.get("cx") or 0) for e in svg.iter(f"{space}circle")]
    assert dots[0] - zero == pytest.approx(2 * (zero - dots[1]), abs=0.3)
    bar = next(e for e in svg.iter(f"{space}line") if e.get("class") == "link")
    middle = (float(bar.get("x1") or 0) + float(bar.get("x2") or 0)) / 2
    assert middle == pytest.approx(dots[0], abs=0.3)


def test_a_browser_shows_it_without_a_complaint(root: Path, tmp_path: Path, chromium: str) -> None:
    dom, console = browse(chromium, write_sweep_report(root).as_uri(), tmp_path / "profile")
    assert console == ""
    assert "Against the first cell" in dom
