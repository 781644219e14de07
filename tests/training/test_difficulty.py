"""Which kinds a run trains on: the base's own pass rate, and the choice kept to everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.training.conftest import write_coin

from harness_adapters.config import Settings, TaskSettings
from harness_adapters.errors import ConfigError
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.tasks import Split
from harness_adapters.training.difficulty import measure
from harness_adapters.training.kinds import Difficulty, nearest_half
from harness_adapters.training.pipeline import test_tasks as held_out
from harness_adapters.training.pipeline import train_run
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


def _found(**solved: int) -> list[Difficulty]:
    return [Difficulty(f"{name}/1", count, 6, 1.0) for name, count in solved.items()]


def test_the_kinds_nearest_one_half_are_chosen() -> None:
    found = _found(always=6, easy=5, half=3, hard=1, never=0)
    assert nearest_half(found, 1) == ["half/1"]
    assert nearest_half(found, 2) == ["half/1", "hard/1"]
    assert nearest_half(found, 5) == ["easy/1", "half/1", "hard/1"]


def test_where_no_kind_is_mixed_the_choice_is_among_all() -> None:
    assert nearest_half(_found(always=6, never=0), 2) == ["always/1", "never/1"]
    assert nearest_half(_found(always=6, never=0), 1) == ["never/1"]  # of two, the harder one
    assert nearest_half([], 3) == []


async def test_the_base_chooses_the_kinds_once_and_the_run_keeps_to_them(
    small: Settings, coins: Path, tmp_path: Path
) -> None:
    for split in ("train", "validation", "test"):
        write_coin(coins, "dice", split, 0)
    tasks = small.tasks.model_copy(update={"learnable": 1, "probe": 5})
    settings = small.model_copy(update={"tasks": tasks})
    run = open_run(tmp_path / "run", settings, resume=False)
    assert run.chooses_kinds and len(run.tasks(Split.TRAIN)) == 7
    await train_run(run, Quiet())
    probed = run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
    assert len(probed) == 10
    (kind,) = run.kinds
    trained = run.store.rollouts(phase=Phase.TRAIN, turns=False)
    validated = run.store.rollouts(phase=Phase.VALIDATION, turns=False)
    assert {f"{r.family}/{r.level}" for r in [*trained, *validated]} == {kind}
    assert {task.kind for task in held_out(run)} == {kind, "apart/1"}
    run.close()
    again = open_run(tmp_path / "run", settings, resume=True)
    assert again.kinds == [kind] and not again.chooses_kinds
    again.close()


def test_a_dataset_with_few_kinds_is_taken_whole(small: Settings, tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    assert not run.chooses_kinds and run.kinds == []
    run.close()
