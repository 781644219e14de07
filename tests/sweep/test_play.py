"""Sweeps on real parts, small: real pi, sandboxes, learner processes, a tiny real model."""

import asyncio
from pathlib import Path

import pytest

from harness_adapters.config import Settings, load
from harness_adapters.errors import LearnerError, StoreError, TaskError
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.report.sweep import write_sweep_report
from harness_adapters.store import Store
from harness_adapters.sweep.directory import Sweep, cell_directory, open_sweep, reopen_sweep
from harness_adapters.sweep.grid import Axis
from harness_adapters.sweep.play import play_sweep
from harness_adapters.sweep.table import read_sweep

BONUS = [Axis("reward.bonus", ("0", "0.3"))]


@pytest.fixture
def one_step(small: Settings) -> Settings:
    """One step of four groups of four: all of them agree once in 4,096 times."""
    sure = ["train.steps=1", "train.groups=4", "train.probe_generations=4"]
    return load(None, sure, begin=small)


def sessions(root: Path) -> set[str]:
    """Ids of all sessions in a sweep's run directories."""
    found: set[str] = set()
    for file in root.glob("*/*/run.sqlite"):
        store = Store.existing(file.parent)
        found |= {rollout.id for rollout in store.rollouts(turns=False)}
        store.close()
    return found


def training_sessions(sweep: Sweep, place: int) -> int:
    """Of one cell, by its place in the grid."""
    root = sweep.place(sweep.cells[place])
    if not (root / "run.sqlite").is_file():
        return 0
    store = Store.existing(root)
    try:
        return len(store.rollouts(phase=Phase.TRAIN, turns=False))
    finally:
        store.close()


@pytest.mark.heavy  # three cells, two evaluations, seven starts of an engine
@pytest.mark.timeout(1800)
async def test_a_sweep_goes_on_after_a_kill_and_a_failure(
    one_step: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "sweep"
    sweep = open_sweep(root, BONUS, one_step)
    work = asyncio.create_task(play_sweep(sweep, Quiet()))
    while not training_sessions(sweep, 1):
        await asyncio.sleep(0.05)
        assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert training_sessions(sweep, 0) == 16
    kept = sessions(root)

    real_update = LearnerClient.update

    async def broken(self: LearnerClient, step: int, rollouts: list[str]) -> object:
        raise LearnerError("the learner ended with status -9")

    monkeypatch.setattr(LearnerClient, "update", broken)
    await play_sweep(reopen_sweep(root), Quiet())
    table = read_sweep(root)
    assert [cell.stopped for cell in table.cells] == [None, "the learner ended with status -9"]
    assert table.cells[0].against_base is not None
    assert table.cells[1].against_base is None
    assert kept < sessions(root)
    kept = sessions(root)

    monkeypatch.setattr(LearnerClient, "update", real_update)
    await play_sweep(reopen_sweep(root), Quiet())
    table = read_sweep(root)
    assert [cell.stopped for cell in table.cells] == [None, None]
    assert [training_sessions(sweep, place) for place in (0, 1)] == [16, 16]
    # The base and two adapters on two tasks and one of another family; the base once for both.
    assert (table.played, table.planned) == (9, 9)
    compared = [table.cells[0].against_base, table.cells[1].against_base]
    compared.append(table.cells[1].against_first)
    assert [c.tasks for c in compared if c] == [2, 2, 2]
    assert all(cell.beside_first for cell in table.cells)
    assert kept < sessions(root)
    kept = sessions(root)

    # A further value: its cell is trained, and joins the evaluation that is there.
    settings = sweep.cells[0].settings
    more = open_sweep(root, [Axis("reward.bonus", ("0.1", "0", "0.3"))], settings)
    await play_sweep(more, Quiet())
    table = read_sweep(root)
    assert [cell.name for cell in table.cells] == ["bonus-0.1", "bonus-0", "bonus-0.3"]
    assert (table.played, table.planned) == (12, 12)
    assert kept < sessions(root)
    kept = sessions(root)
    await play_sweep(reopen_sweep(root), Quiet())
    assert sessions(root) == kept
    assert "3 cells" in write_sweep_report(root).read_text()


def test_what_can_not_be_compared_is_refused_before_anything_is_trained(
    one_step: Settings, tmp_path: Path
) -> None:
    root = tmp_path / "sweep"
    open_sweep(root, BONUS, one_step)
    with pytest.raises(StoreError, match=r"was started over reward\.bonus"):
        open_sweep(root, [Axis("train.seed", ("0", "1"))], one_step)
    other = load(None, ["train.learning_rate=1.0"], begin=one_step)
    with pytest.raises(StoreError, match=r"was started with another train\.learning_rate"):
        open_sweep(root, BONUS, other)
    cell = cell_directory(root, "bonus-0")
    with pytest.raises(StoreError, match="holds a run"):
        open_sweep(cell, BONUS, one_step)
    again = reopen_sweep(root, ["concurrency=2"])
    assert [one.settings.concurrency for one in again.cells] == [2, 2]
    assert [one.settings.reward.bonus for one in again.cells] == [0.0, 0.3]


def test_cells_with_other_test_tasks_are_refused(tmp_path: Path, one_step: Settings) -> None:
    starter = ["tasks.dataset=starter", "tasks.train=8", "tasks.validation=8", "tasks.test=8"]
    settings = load(None, starter, begin=one_step)
    with pytest.raises(TaskError, match="seed-1 would be evaluated on other test tasks than seed"):
        open_sweep(tmp_path / "sweep", [Axis("tasks.seed", ("0", "1"))], settings)
    assert not (tmp_path / "sweep" / "sweep.json").exists()
