import pytest

from harness_adapters.config import TrainSettings
from harness_adapters.learner.batch import make_batch

from .builders import rollout, turn

TASK_A, TASK_B = [1, 2, 3], [1, 2, 4]


def group_of_four() -> list:
    return [
        rollout("a0", [turn(TASK_A, [5, 6])], reward=1.0, group="a"),
        rollout("a1", [turn(TASK_A, [7])], reward=0.0, correct=False, group="a"),
        rollout("b0", [turn(TASK_B, [5])], reward=0.0, correct=False, group="b"),
        rollout("b1", [turn(TASK_B, [6, 7, 8])], reward=0.0, correct=False, group="b"),
    ]


def test_rollouts_without_advantage_make_no_rows_but_count_in_the_mean() -> None:
    batch = make_batch(group_of_four(), TrainSettings(), version=0)
    assert batch.advantages == [0.5, -0.5]
    assert [r.ids for r in batch.rows] == [[*TASK_A, 5, 6], [*TASK_A, 7]]
    assert [r.rollout for r in batch.rows] == [0, 1]
    # each of 4 scored rollouts weighs 1/4, spread over its tokens
    assert batch.weights == [1 / 8, 1 / 4]
    assert batch.signal == 0.25
    assert batch.metrics["groups/mixed"] == 1
    assert batch.metrics["groups/all_wrong"] == 1
    assert batch.metrics["reward"] == 0.25
    assert batch.metrics["reward_std"] == pytest.approx(0.5**0.5 / 2)
    assert batch.metrics["frac_reward_zero_std"] == 0.5
    assert batch.metrics["completions/mean_length"] == 7 / 4
    assert batch.metrics["tokens/raw"] == 5 + 4


def test_token_normalisation_weighs_every_token_the_same() -> None:
    batch = make_batch(group_of_four(), TrainSettings(normalisation="token"), version=0)
    assert batch.weights == [1 / 7, 1 / 7]


def test_constant_normalisation_by_hand() -> None:
    settings = TrainSettings(normalisation="constant", constant_tokens=10)
    assert make_batch(group_of_four(), settings, version=0).weights == [1 / 40, 1 / 40]


def test_unscored_rollouts_are_neither_trained_nor_averaged() -> None:
    failed = rollout("a2", [turn(TASK_A, [9])], reward=None, correct=None, group="a")
    lost = rollout("c0", [turn(TASK_A, [9])], reward=None, correct=None, group="c")
    batch = make_batch([*group_of_four(), failed, lost], TrainSettings(), version=0)
    assert batch.advantages == [0.5, -0.5]
    assert batch.metrics["rollouts/unscored"] == 2
    assert batch.metrics["groups/unscored"] == 1
    assert batch.metrics["reward"] == 0.25


def test_stale_rollouts_inform_the_mean_but_are_not_trained() -> None:
    rollouts = [
        rollout("a0", [turn(TASK_A, [5])], reward=1.0, group="a", version=1),
        rollout("a1", [turn(TASK_A, [7])], reward=0.0, correct=False, group="a", version=4),
    ]
    batch = make_batch(rollouts, TrainSettings(max_staleness=2), version=4)
    assert batch.advantages == [-0.5]
    assert batch.metrics["rollouts/stale"] == 1


def test_order_of_rollouts_does_not_matter() -> None:
    rollouts = group_of_four()
    assert make_batch(rollouts, TrainSettings(), 0) == make_batch(
        rollouts[::-1], TrainSettings(), 0
    )


def test_a_rollout_that_forks_weighs_as_one() -> None:
    forked = rollout("a0", [turn(TASK_A, [5, 6]), turn([*TASK_A, 9], [7, 8])], group="a")
    other = rollout("a1", [turn(TASK_A, [7])], reward=0.0, correct=False, group="a")
    batch = make_batch([forked, other], TrainSettings(), 0)
    assert [r.rollout for r in batch.rows] == [0, 0, 1]
    assert batch.weights == [1 / 8, 1 / 2]


def test_nothing_at_all() -> None:
    batch = make_batch([], TrainSettings(), 0)
    assert batch.rows == []
    assert batch.signal == 0
