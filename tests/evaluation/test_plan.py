from collections import Counter

import pytest

from harness_adapters.evaluation.pairs import matching
from harness_adapters.evaluation.plan import (
    PairedPlan,
    attempt_seed,
)
from harness_adapters.records import Phase

from .conftest import MakeRollout

TASKS = [f"sum-{i}" for i in range(10)]


def test_every_pair_is_planned_once_and_arms_are_adjacent() -> None:
    plan = PairedPlan(TASKS, ["base", "pi"], attempts=3, seed=1)
    sessions = plan.sessions()
    assert len(sessions) == len(set(sessions)) == 60
    for first, second in zip(sessions[::2], sessions[1::2], strict=True):
        assert (first.task, first.attempt, first.seed) == (second.task, second.attempt, second.seed)
        assert {first.arm, second.arm} == {"base", "pi"}


def test_each_arm_goes_first_equally_often() -> None:
    firsts = Counter(s.arm for s in PairedPlan(TASKS, ["base", "pi"], attempts=2).sessions()[::2])
    assert firsts == {"base": 10, "pi": 10}


def test_plan_is_reproducible_and_its_order_depends_on_the_seed() -> None:
    plan = PairedPlan(TASKS, ["base", "pi"], seed=3)
    assert plan.sessions() == PairedPlan(TASKS, ["base", "pi"], seed=3).sessions()
    assert plan.sessions() != PairedPlan(TASKS, ["base", "pi"], seed=4).sessions()
    assert [s.task for s in plan.sessions()[::2]] != TASKS


def test_attempts_have_their_own_seeds_in_range() -> None:
    seeds = {attempt_seed(0, t, a) for t in TASKS for a in range(5)}
    assert len(seeds) == 50
    assert all(0 <= seed < 2**31 for seed in seeds)


def test_missing_leaves_out_what_the_store_holds(make_rollout: MakeRollout) -> None:
    plan = PairedPlan(["sum-1", "sum-2"], ["base", "pi"])
    done = [
        make_rollout("base", "sum-1", True),
        make_rollout("pi", "sum-2", True),
        make_rollout("pi", "sum-1", True, phase=Phase.VALIDATION),
        make_rollout("base", "sum-2", True, attempt=1),
    ]
    left = plan.missing(done)
    assert {(s.arm, s.task) for s in left} == {("pi", "sum-1"), ("base", "sum-2")}
    assert left == [s for s in plan.sessions() if s in left]


def test_a_session_without_reward_is_planned_again(make_rollout: MakeRollout) -> None:
    plan = PairedPlan(["sum-1"], ["base", "pi"])
    broken = [make_rollout("base", "sum-1", True), make_rollout("pi", "sum-1", None)]
    assert [s.arm for s in plan.missing(broken)] == ["pi"]
    assert plan.missing([*broken, make_rollout("pi", "sum-1", False, started=9.0)]) == []


def test_what_another_adapter_played_is_not_done(make_rollout: MakeRollout) -> None:
    plan = PairedPlan(["sum-1"], ["base", "pi"])
    stored = [
        make_rollout("base", "sum-1", True, temperature=0.2),
        make_rollout("pi", "sum-1", True, adapter="pi-v3"),
    ]
    left = plan.missing(matching(stored, {"base": "base", "pi": "pi-v9"}, 0.8))
    assert {s.arm for s in left} == {"base", "pi"}
    assert plan.missing(matching(stored, {"base": "base", "pi": "pi-v3"}, 0.8)) == [
        s for s in plan.sessions() if s.arm == "base"
    ]


def test_a_plan_refuses_repetitions() -> None:
    with pytest.raises(ValueError, match="task stands twice"):
        PairedPlan(["a", "a"], ["base"])
