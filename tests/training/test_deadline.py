"""A training that has to leave time for the evaluation."""

import pytest

from harness_adapters.training import deadline
from harness_adapters.training.deadline import Deadline


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten minutes after the training's begin at 0."""
    monkeypatch.setattr(deadline.time, "monotonic", lambda: 600.0)


@pytest.mark.usefixtures("now")
@pytest.mark.parametrize(
    ("at", "sessions_after", "stop"),
    [
        (700.0, 0, True),  # a step of a minute and its validation no longer fit
        (719.0, 0, True),
        (721.0, 0, False),
        (721.0, 10, True),  # 600 s for 500 sessions: ten take 12 s
        (733.0, 10, False),
    ],
)
def test_it_stops_when_one_more_step_would_not_fit(
    at: float, sessions_after: int, stop: bool
) -> None:
    assert Deadline(at, sessions_after).leaves_no_step(0.0, steps=10, sessions=500) is stop


@pytest.mark.usefixtures("now")
def test_the_first_step_is_never_divided_by_zero() -> None:
    assert not Deadline(10_000.0, 1).leaves_no_step(0.0, steps=0, sessions=0)
