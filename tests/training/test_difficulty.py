"""Which kinds a run trains on: the base's own pass rate, and the choice kept to everywhere."""

from pathlib import Path

import pytest
from tests.training.conftest import write_coin

from harness_adapters.config import Settings, TaskSettings
from harness_adapters.errors import ConfigError
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.tasks import Split
from harness_adapters.training.difficulty import measure
from harness_adapters.training.pipeline import test_tasks as held_out
from harness_adapters.training.run import open_run


def choosing(settings: Settings, *kinds: str) -> Settings:
    tasks = settings.tasks.model_copy(update={"kinds": list(kinds)})
    return settings.model_copy(update={"tasks": tasks})


async def test_each_kind_is_played_and_nothing_twice(
    small: Settings, coins: Path, tmp_path: Path
) -> None:
    write_coin(coins, "dice", "train", 0)
    run = open_run(tmp_path / "run", small, resume=False)
    found = await measure(run, Quiet(), attempts=2)
    assert [(one.kind, one.sessions) for one in sorted(found, key=lambda one: one.kind)] == [
        ("coin/1", 2),
        ("dice/1", 2),
    ]
    played = run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
    assert {r.task.split("-")[1] for r in played} == {"train"}
    assert {r.temperature for r in played} == {small.train.temperature}
    again = await measure(run, Quiet(), attempts=3)
    assert {one.sessions for one in again} == {3}
    more = run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
    assert {r.id for r in played} < {r.id for r in more}
    assert len(more) == 6
    assert {one.kind: one.solved for one in again} == {
        f"{name}/1": sum(bool(r.correct) for r in more if r.family == name)
        for name in ("coin", "dice")
    }
    colder = await measure(run, Quiet(), attempts=1, temperature=0.5)
    assert {one.sessions for one in colder} == {1}
    run.close()


def test_only_chosen_kinds_are_trained_validated_and_quoted(
    small: Settings, coins: Path, tmp_path: Path
) -> None:
    for split in ("train", "validation", "test"):
        write_coin(coins, "dice", split, 0)
    run = open_run(tmp_path / "run", choosing(small, "dice/1"), resume=False)
    assert {task.family for task in run.tasks(Split.TRAIN)} == {"dice"}
    assert {task.family for task in run.tasks(Split.VALIDATION)} == {"dice"}
    assert {task.family for task in held_out(run)} == {"dice", "apart"}
    assert len(run.dataset.split(Split.TRAIN)) == 7  # the warm start may demonstrate them all
    run.close()


def test_a_kind_that_is_not_there_is_named(small: Settings, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"kind 'coin/4'; there are coin/1"):
        open_run(tmp_path / "run", choosing(small, "coin/1", "coin/4"), resume=False)
    starter = small.model_copy(update={"tasks": TaskSettings(kinds=["sort_lines/7"])})
    with pytest.raises(ConfigError, match=r"kind 'sort_lines/7'"):
        open_run(tmp_path / "run", starter, resume=False)
    open_run(tmp_path / "run", choosing(small, "coin/1"), resume=False).close()
