"""Which version becomes the run's best."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.training.selection import Validation, choose, doubt


def _new(step: int, reward: float, error: float = 0.07) -> Validation:
    return Validation(step, f"pi-v{step}", step, reward, error, reward)


def _best(*validations: Validation) -> dict[str, Any]:
    best = None
    for validation in validations:
        best = choose(best, validation)
    assert best is not None
    return best


def test_the_last_version_within_one_standard_error_of_the_highest_is_the_best() -> None:
    assert _best(_new(5, 0.56), _new(10, 0.48), _new(15, 0.54), _new(20, 0.52))["step"] == 20


def test_a_version_that_lost_what_it_had_learned_is_not_the_best() -> None:
    assert _best(_new(5, 0.50), _new(10, 0.56), _new(15, 0.30), _new(20, 0.48))["step"] == 10


def test_versions_can_not_creep_down_by_one_error_after_another() -> None:
    best = _best(_new(5, 0.60), _new(10, 0.55), _new(15, 0.50))
    assert (best["step"], best["validation"], best["highest"]) == (10, 0.55, 0.60)


@given(st.lists(st.floats(0, 1.1), min_size=1, max_size=9))
def test_step_by_step_is_the_same_as_looking_back_over_all(rewards: list[float]) -> None:
    validations = [_new(step, reward) for step, reward in enumerate(rewards)]
    near = [v for v in validations if v.reward >= max(rewards) - v.error]
    assert _best(*validations)["step"] == near[-1].step


def test_the_error_is_that_of_the_mean() -> None:
    made = Validation.of(
        [1.0, 0.0, 1.0, 0.0], [True, False, True, False], step=1, adapter="pi-v1", version=1
    )
    assert made.reward == made.pass_rate == 0.5
    assert made.error == pytest.approx(math.sqrt(1 / 3) / 2)


def test_one_session_says_nothing_about_its_error() -> None:
    one = Validation.of([1.0], [True], step=1, adapter="pi-v1", version=1)
    assert math.isinf(one.error)
    assert _best(one, _new(2, 0.9))["step"] == 1


def test_a_run_that_was_begun_before_errors_were_kept_goes_on() -> None:
    old = {"step": 5, "adapter": "pi-v5", "version": 5, "validation": 0.5, "pass_rate": 0.5}
    assert choose(old, _new(10, 0.49)) == old
    assert choose(old, _new(10, 0.51))["step"] == 10


def test_a_best_version_below_its_base_is_doubted() -> None:
    best = _best(_new(5, 0.4))
    assert doubt(best, 0.4) is None
    assert doubt(best, None) is None
    assert doubt(None, 0.4) is None
    assert "pi-v5 does worse" in (doubt(best, 0.59) or "")
