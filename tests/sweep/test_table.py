from pathlib import Path

import pytest

from harness_adapters.config import Settings
from harness_adapters.errors import StoreError
from harness_adapters.sweep.directory import SWEEP
from harness_adapters.sweep.grid import Axis
from harness_adapters.sweep.table import read_sweep
from harness_adapters.sweep.text import MANY, as_text, summary
from report.synthetic_sweep import make_sweep

BONUS = Axis("reward.bonus", ("0", "0.1", "0.3"))
PROFILE = Axis("harness.profile", ("lean", "stock"))


def test_each_cell_stands_against_the_base_and_against_the_first(tmp_path: Path) -> None:
    own = {"bonus-0": 12, "bonus-0.1": 18, "bonus-0.3": 6}
    table = read_sweep(make_sweep(tmp_path / "sweep", BONUS, {"one": own}))
    assert (table.played, table.planned, table.evaluated) == (80, 80, 3)
    base = [c.against_base for c in table.cells]
    assert [round(20 * c.by_task.value) for c in base if c] == [2, 8, -4]
    first = [c.against_first for c in table.cells]
    assert first[0] is None
    assert [round(20 * c.by_task.value) for c in first if c] == [6, -6]
    assert [(c.discordance.only_base, c.discordance.only_treatment) for c in first if c] == [
        (0, 6), (6, 0),
    ]  # fmt: skip
    assert all(c.pairs == 20 and c.excluded == [] for c in (*base, *first) if c)
    assert [c.best for c in table.cells] == [10, 10, 10]
    assert [c.sessions for c in table.cells] == [2, 2, 2]
    assert all(c.beside_first for c in table.cells)
    assert summary(table).startswith("reward.bonus: 3 cells, bonus-0.1 ahead: 50% -> 90%, +40 [")
    assert "; +30 [" in summary(table) and summary(table).endswith("against the first cell")
    text = as_text(table)
    assert MANY in text
    assert [line.split()[0] for line in text.splitlines()[1:4]] == list(own)
    assert "50% -> 90%" in text and "(the first)" in text


def test_cells_of_another_evaluation_are_paired_by_task(tmp_path: Path) -> None:
    """Their labels are the same there: what played counts, not what it was called."""
    groups = {"one": {"profile-lean": 12}, "two": {"profile-stock": 15}}
    table = read_sweep(make_sweep(tmp_path / "sweep", PROFILE, groups))
    lean, stock = table.cells
    assert (lean.evaluation, stock.evaluation) == ("evaluations/one", "evaluations/two")
    assert not stock.beside_first
    assert stock.against_first is not None
    assert stock.against_first.pairs == 20
    assert round(20 * stock.against_first.by_task.value) == 3
    assert stock.against_base is not None
    assert round(20 * stock.against_base.by_task.value) == 5


def test_a_lead_is_never_said_surer_than_it_is(tmp_path: Path) -> None:
    own = {"bonus-0": 11, "bonus-0.1": 12, "bonus-0.3": 11}
    table = read_sweep(make_sweep(tmp_path / "sweep", BONUS, {"one": own}))
    assert summary(table).endswith("against the first cell, not distinguishable from none")
    own = {"bonus-0": 14, "bonus-0.1": 12, "bonus-0.3": 11}
    table = read_sweep(make_sweep(tmp_path / "other", BONUS, {"one": own}))
    assert summary(table).endswith("(it is the first)")


def test_a_sweep_that_is_not_finished(tmp_path: Path) -> None:
    stopped = {"bonus-0.3": "the learner ended with status -9"}
    root = make_sweep(tmp_path / "sweep", BONUS, {"one": {"bonus-0": 12}}, stopped=stopped)
    table = read_sweep(root)
    assert table.evaluated == 1
    assert summary(table) == "reward.bonus: 1 of 3 cells trained, 1 with a result, 1 stopped"
    text = as_text(table)
    assert f"3 of {Settings().train.steps} steps, stopped" in text
    assert "bonus-0.3: stopped: the learner ended with status -9" in text
    assert table.cells[1].against_base is None


def test_no_sweep_and_a_damaged_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not the directory of a sweep"):
        read_sweep(tmp_path)
    (tmp_path / SWEEP).write_text('{"axes": [')
    with pytest.raises(StoreError, match="can't be read"):
        read_sweep(tmp_path)
