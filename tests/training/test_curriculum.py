from pathlib import Path

import pytest

from harness_adapters.records import Phase, Rollout, SessionEnd
from harness_adapters.tasks import Split, Task
from harness_adapters.training.curriculum import FLOOR, Curriculum


def task(family: str, level: int, number: int) -> Task:
    return Task(
        id=f"{family}-{level}-{number}",
        root=Path("/nowhere"),
        instruction="",
        workdir="/app",
        family=family,
        level=level,
        seed=number,
        split=Split.TRAIN,
        agent_timeout=1.0,
        verifier_timeout=1.0,
        memory_mb=64,
        oracle=(),
    )


def rollout(family: str, correct: bool | None) -> Rollout:
    return Rollout(
        id="r", phase=Phase.TRAIN, harness="pi", profile="lean", arm="pi", adapter="base",
        version=0, task="t", family=family, level=1, group="g", attempt=0, step=0,
        temperature=1.0, score=None, reward=None, correct=correct, calls=0,
        end=SessionEnd.FINISHED, error="", turns=[], verifier_output="", started=0.0, seconds=0.0,
    )  # fmt: skip


TASKS = [task(family, 1, n) for family in ("easy", "even", "hard", "new") for n in range(200)]


def test_weight_peaks_at_one_half_and_never_reaches_zero() -> None:
    curriculum = Curriculum()
    curriculum.learn(rollout("easy", True) for _ in range(60))
    curriculum.learn(rollout("hard", False) for _ in range(60))
    curriculum.learn(rollout("even", bool(n % 2)) for n in range(60))
    weights = {name: curriculum.weight((name, 1)) for name in ("easy", "even", "hard", "new")}
    assert weights["new"] == 1.0
    assert weights["even"] == pytest.approx(1.0, abs=0.01)
    assert weights["easy"] < 0.25 and weights["hard"] < 0.25
    assert min(weights.values()) >= FLOOR


def test_unscored_rollouts_are_no_evidence() -> None:
    curriculum = Curriculum()
    curriculum.learn([rollout("easy", None)] * 10)
    assert curriculum.pass_rate(("easy", 1)) == 0.5


def test_later_rollouts_outweigh_earlier_ones() -> None:
    curriculum = Curriculum()
    curriculum.learn(rollout("even", False) for _ in range(40))
    curriculum.learn(rollout("even", True) for _ in range(40))
    assert curriculum.pass_rate(("even", 1)) > 0.7


def test_what_was_seen_long_ago_says_little() -> None:
    curriculum = Curriculum()
    curriculum.learn(rollout("easy", True) for _ in range(8))
    at_once = curriculum.weight(("easy", 1))
    for _ in range(12):
        curriculum.age()
    assert at_once < 0.2 and curriculum.weight(("easy", 1)) > 2 * at_once


def test_saturated_kinds_are_drawn_less() -> None:
    curriculum = Curriculum()
    curriculum.learn(rollout("easy", True) for _ in range(80))
    drawn = [curriculum.draw(TASKS, 1, seed=f"0/{step}", used=())[0].family for step in range(300)]
    assert drawn.count("easy") < drawn.count("new") / 3


def test_draw_is_deterministic_and_avoids_used_tasks() -> None:
    curriculum = Curriculum()
    first = curriculum.draw(TASKS, 4, seed="7/0", used=())
    assert [t.id for t in first] == [t.id for t in curriculum.draw(TASKS, 4, seed="7/0", used=())]
    again = curriculum.draw(TASKS, 4, seed="7/0", used=[t.id for t in first])
    assert not {t.id for t in first} & {t.id for t in again}


def test_draw_spreads_over_kinds() -> None:
    drawn = [Curriculum().draw(TASKS, 4, seed=str(step), used=()) for step in range(300)]
    kinds = sum(len({task.family for task in tasks}) for tasks in drawn) / len(drawn)
    assert 3.0 < kinds < 4.0  # 2.7 if every draw were the first
    assert all(len({task.id for task in tasks}) == 4 for tasks in drawn)


def test_tasks_come_again_when_their_kind_has_no_others() -> None:
    few, other = TASKS[:3], TASKS[-1]
    again = Curriculum().draw([*few, other], 4, seed="0", used=[t.id for t in few])
    assert {t.id for t in again} == {t.id for t in [*few, other]}
    curriculum = Curriculum()
    curriculum.learn(rollout(other.family, False) for _ in range(80))
    drawn = [
        curriculum.draw([*few, other], 1, seed=str(step), used=[t.id for t in few])[0].id
        for step in range(100)
    ]
    assert drawn.count(other.id) < 20
