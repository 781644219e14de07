from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.reward import reward


@pytest.mark.parametrize(
    ("score", "calls", "expected"),
    [(1.0, 0, 1.1), (1.0, 3, 1.08), (1.0, 15, 1.0), (1.0, 40, 1.0), (0.0, 0, 0.0), (0.5, 1, 0.5)],
)
def test_known_values(score: float, calls: int, expected: float) -> None:
    assert reward(score, calls) == pytest.approx(expected)


def test_bonus_and_call_budget_are_settings() -> None:
    assert reward(1.0, 5, bonus=0.4, call_budget=10) == pytest.approx(1.2)
    assert reward(1.0, 0, bonus=0.0) == 1.0


@pytest.mark.parametrize("score", [-0.1, 1.0001, float("nan"), float("inf")])
def test_score_outside_the_unit_interval_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="outside"):
        reward(score, 1)


@given(st.floats(0, 1), st.integers(0, 100), st.integers(0, 100))
def test_fewer_calls_never_pay_less_and_never_beat_being_correct(
    score: float, calls: int, more: int
) -> None:
    assert reward(score, calls) >= reward(score, calls + more)
    if score < 1.0:
        assert reward(score, calls) == score < reward(1.0, calls + more)


def test_faults_cost_and_never_make_trying_worse_than_nothing() -> None:
    assert reward(1.0, 3, faults=2, fault_cost=0.02) == pytest.approx(1.04)
    assert reward(0.5, 3, faults=1, fault_cost=0.1) == pytest.approx(0.4)
    assert reward(0.0, 9, faults=9, fault_cost=0.1) == 0.0
