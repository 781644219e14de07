import json
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness_adapters.evaluation.matrix import MatrixArm, MatrixPlan, matrix_of
from harness_adapters.records import Phase, Rollout
from harness_adapters.report.page import write_report
from harness_adapters.report.transfer import shade
from harness_adapters.store import Store

from .browser import browse
from .html_reader import section_of
from .synthetic import make_rollout

ARMS = [
    MatrixArm("base", "base", None),
    MatrixArm("pi-v8", "pi-v8-0a1b2c3d", "/runs/pi/adapters/pi-v8", "pi", ["csv"]),
    MatrixArm("stray", "stray-ffffffff", "/tmp/stray", None, [], False),
]
CHANCES = {
    ("base", "pi"): 0.2, ("base", "opencode"): 0.2, ("pi-v8", "pi"): 0.9,
    ("pi-v8", "opencode"): 0.22, ("stray", "pi"): 0.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def rollouts() -> list[Rollout]:
    """40 tasks of two families; nobody played the stray adapter in opencode."""
    rng = random.Random(5)
    made: list[Rollout] = []
    for (arm, harness), chance in CHANCES.items():
        for instance in range(40):
            family = "csv" if instance % 2 else "logs"
            rollout = make_rollout(
                rng, phase=Phase.TEST, arm=arm, family=family, level=1, instance=instance,
                chance=chance, started=1000.0 + len(made),
            )  # fmt: skip
            adapter = next(a.adapter for a in ARMS if a.label == arm)
            made.append(
                replace(rollout, id=f"{harness}-{rollout.id}", harness=harness, adapter=adapter)
            )
    return made


@pytest.fixture(scope="module")
def plan(rollouts: list[Rollout]) -> MatrixPlan:
    return MatrixPlan(ARMS, ["pi", "opencode"], sorted({r.task for r in rollouts}), 1, 0.8)


@pytest.fixture(scope="module")
def root(
    rollouts: list[Rollout], plan: MatrixPlan, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("matrix")
    store = Store(root)
    for rollout in rollouts:
        store.add(rollout)
    store.set_fact("matrix", asdict(plan))
    store.set_fact(
        "evaluation",
        {"base": "base", "treatment": "pi-v8", "temperature": 0.8, "tasks": plan.tasks,
         "played": {"base": "base", "pi-v8": "pi-v8-0a1b2c3d"}, "harness": "pi",
         "unseen_families": ["csv"]},
    )  # fmt: skip
    store.set_fact("settings", {"price": {"engine_hour": 3.0}})
    store.close()
    return root


def test_cells_are_compared_within_their_harness(rollouts: list[Rollout], plan: MatrixPlan) -> None:
    matrix = matrix_of(plan, rollouts)
    assert (plan.sessions, matrix.scored) == (240, 200)
    cells = {(c.arm, c.harness): c for c in matrix.cells}
    own, other = cells["pi-v8", "pi"], cells["pi-v8", "opencode"]
    assert own.trained_here and not other.trained_here
    assert own.comparison is not None and other.comparison is not None
    assert own.comparison.tasks == 20  # those of the family that training had
    assert own.comparison.unseen is not None and own.comparison.unseen.tasks == 20
    assert shade(own.comparison.by_task) == "gain4"
    assert shade(other.comparison.by_task) == "unsure"
    assert shade(cells["stray", "pi"].comparison.by_task) == "loss3"  # type: ignore[union-attr]
    assert cells["stray", "opencode"].comparison is None
    assert [row.family for row in matrix.domains()["pi-v8", "pi"]] == ["logs", "csv"]
    # Another adapter's sessions under the same label belong to another evaluation.
    strangers = [replace(r, adapter="pi-v9-99999999") if r.arm == "pi-v8" else r for r in rollouts]
    assert matrix_of(plan, strangers).cells[0].comparison is None


def test_the_page_shows_the_matrix_and_what_it_cost(root: Path) -> None:
    html = write_report(root).read_text("utf-8")
    shown = section_of(html, "transfer")
    assert "200 of 240 sessions are played and scored" in shown
    assert "Nothing says what stray was trained on" in shown
    assert shown.count('class="heat gain4 framed"') == 4  # own harness, unseen family; two widths
    assert "By family" in shown
    assert "per point gained" in section_of(html, "cost")
    assert "pi-v8 in pi: 2" in html
    results = json.loads((root / "report" / "results.json").read_text())
    assert len(results["matrix"]["cells"]) == 4
    assert results["cost"]["total"]["sessions"] == 200
    assert (root / "report" / "plots" / "transfer.svg").is_file()
    assert (root / "report" / "plots" / "domains.svg").is_file()


def test_a_browser_shows_it_without_a_complaint(root: Path, tmp_path: Path, chromium: str) -> None:
    dom, console = browse(chromium, write_report(root).as_uri(), tmp_path / "profile")
    assert console == ""
    assert 'id="transfer"' in dom
