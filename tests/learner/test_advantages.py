import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.learner.advantages import GroupKind, group_advantages, group_kind


def test_mean_centred_by_hand() -> None:
    assert group_advantages([1.0, 0.0, 0.0, 1.0]) == [0.5, -0.5, -0.5, 0.5]
    assert group_advantages([1.06, None, 1.08]) == pytest.approx([-0.01, None, 0.01])


def test_grpo_by_hand() -> None:
    # mean 0.5, unbiased std sqrt(1/3)
    expected = 0.5 / ((1 / 3) ** 0.5 + 1e-4)
    assert group_advantages([1.0, 0.0, 0.0, 1.0], "grpo") == pytest.approx(
        [expected, -expected, -expected, expected]
    )


def test_rloo_by_hand() -> None:
    # others' means: 1/3, 2/3, 2/3, 1/3
    assert group_advantages([1.0, 0.0, 0.0, 1.0], "rloo") == pytest.approx(
        [2 / 3, -2 / 3, -2 / 3, 2 / 3]
    )


@pytest.mark.parametrize("method", ["mean", "grpo", "dr_grpo", "rloo", "gated"])
def test_nothing_to_compare_with(method: str) -> None:
    assert group_advantages([], method) == []  # type: ignore[arg-type]  # parametrised
    assert group_advantages([None, None], method) == [None, None]  # type: ignore[arg-type]
    assert group_advantages([None, 0.7], method) == [None, 0.0]  # type: ignore[arg-type]


@given(
    st.lists(st.none() | st.floats(0, 1.1), min_size=1, max_size=16),
    st.sampled_from(["mean", "grpo", "dr_grpo", "rloo", "gated"]),
)
def test_advantages_of_a_group_sum_to_zero(rewards: list[float | None], method: str) -> None:
    found = group_advantages(rewards, method)  # type: ignore[arg-type]  # sampled
    assert [a is None for a in found] == [r is None for r in rewards]
    assert sum(a for a in found if a is not None) == pytest.approx(0, abs=1e-6)


def test_gated_by_hand() -> None:
    # correctness: rate 1/2, deviation sqrt(1/3); bonuses of the correct: 0.06 and 0.02
    big = 0.5 / (1 / 3) ** 0.5
    found = group_advantages([1.06, 0.0, 1.02, 0.0], "gated", [True, False, True, False])
    assert found == pytest.approx([big + 0.5 * 0.02, -big, big - 0.5 * 0.02, -big])
    # all correct: the bonus at its own size; all wrong: nothing
    right = group_advantages([1.06, None, 1.02], "gated", [True, None, True])
    assert right == pytest.approx([0.02, None, -0.02])
    assert group_advantages([0.3, 0.0], "gated", [False, False]) == [0.0, 0.0]


def test_equal_rewards_give_exact_zeros() -> None:
    reward = 1 + 0.1 * (1 - 4 / 15)
    assert group_advantages([reward] * 7, "grpo") == [0.0] * 7


def test_kinds() -> None:
    assert group_kind([True, False, None]) is GroupKind.MIXED
    assert group_kind([True, True, None]) is GroupKind.ALL_CORRECT
    assert group_kind([False, False]) is GroupKind.ALL_WRONG
    assert group_kind([None]) is GroupKind.UNSCORED
