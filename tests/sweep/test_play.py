"""Sweeps on real parts, small: real pi, sandboxes, learner processes, a tiny real model."""

import asyncio
from pathlib import Path

import pytest

from adapters.conftest import save_adapter
from harness_adapters.config import Settings, load
from harness_adapters.errors import StoreError, TaskError
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.report.sweep import write_sweep_report
from harness_adapters.store import Store
from harness_adapters.sweep.directory import Sweep, cell_directory, open_sweep, reopen_sweep
from harness_adapters.sweep.grid import Axis, Cell
from harness_adapters.sweep.play import play_sweep
from harness_adapters.sweep.table import read_sweep
from harness_adapters.sweep.text import summary
from harness_adapters.training.run import open_run

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


def trained(sweep: Sweep, cell: Cell, model: Path, seed: int) -> None:
    """Leave a cell as its training leaves it, with an adapter of random weights."""
    run = open_run(sweep.place(cell), cell.settings, resume=True)
    save_adapter(model, run.root / "adapters" / "pi-v1", seed)
    run.store.set_fact("model_dir", str(model))
    run.store.set_fact("trained_steps", 1)
    run.store.set_fact("validated:1", {"reward": 0.5})
    run.store.set_fact("best", {"step": 1, "adapter": "pi-v1", "version": 1, "validation": 0.5})
    run.close()


async def test_cells_are_evaluated_together_and_others_can_be_added(
    one_step: Settings, tiny: Path, tmp_path: Path
) -> None:
    root = tmp_path / "sweep"
    sweep = open_sweep(root, BONUS, one_step)
    for seed, cell in enumerate(sweep.cells):
        trained(sweep, cell, tiny, seed)
    await play_sweep(sweep, Quiet())
    table = read_sweep(root)
    # The base and two adapters on two tasks and one of another family; the base once for both.
    assert (table.played, table.planned) == (9, 9)
    compared = [table.cells[0].against_base, table.cells[1].against_base]
    compared.append(table.cells[1].against_first)
    assert [c.tasks for c in compared if c] == [2, 2, 2]
    assert all(cell.beside_first for cell in table.cells)
    kept = sessions(root)

    # A further value in front: its cell joins the evaluation that is there.
    more = open_sweep(root, [Axis("reward.bonus", ("0.1", "0", "0.3"))], one_step)
    trained(more, more.cells[0], tiny, 5)
    await play_sweep(more, Quiet())
    table = read_sweep(root)
    assert [cell.name for cell in table.cells] == ["bonus-0.1", "bonus-0", "bonus-0.3"]
    assert (table.played, table.planned, table.evaluated) == (12, 12, 3)
    assert len({cell.evaluation for cell in table.cells}) == 1
    assert kept < sessions(root)
    kept = sessions(root)
    await play_sweep(reopen_sweep(root), Quiet())
    assert sessions(root) == kept
    assert "3 cells" in write_sweep_report(root).read_text()


async def test_a_cell_without_an_adapter_is_left_out_with_its_reason(
    one_step: Settings, tiny: Path, tmp_path: Path
) -> None:
    root = tmp_path / "sweep"
    sweep = open_sweep(root, BONUS, one_step)
    for cell in sweep.cells:
        trained(sweep, cell, tiny, 1)
        store = Store.existing(sweep.place(cell))
        store.set_fact("best", None)
        store.close()
    assert await play_sweep(sweep, Quiet()) == []
    table = read_sweep(root)
    assert [str(cell.stopped)[:31] for cell in table.cells] == [
        "no step moved the weights: no g"
    ] * 2
    assert "2 stopped" in summary(table)


@pytest.mark.heavy  # two cells are trained, three starts of an engine
@pytest.mark.timeout(1800)
async def test_a_sweep_goes_on_after_a_kill(one_step: Settings, tmp_path: Path) -> None:
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
    await play_sweep(reopen_sweep(root), Quiet())
    table = read_sweep(root)
    assert [cell.stopped for cell in table.cells] == [None, None]
    assert [training_sessions(sweep, place) for place in (0, 1)] == [16, 16]
    assert (table.played, table.planned) == (9, 9)
    assert kept < sessions(root)


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
