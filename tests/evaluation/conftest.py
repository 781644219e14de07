from collections.abc import Callable

import pytest

from harness_adapters.records import Phase, Rollout, SessionEnd

MakeRollout = Callable[..., Rollout]


@pytest.fixture
def make_rollout() -> MakeRollout:
    """A scored session without turns; keywords override."""

    def make(arm: str, task: str, solved: bool | None, **other: object) -> Rollout:
        attempt = other.get("attempt", 0)
        values: dict[str, object] = {
            "id": f"{arm}/{task}/{attempt}/{other.get('started', 0)}",
            "phase": Phase.TEST,
            "harness": "pi",
            "profile": "lean",
            "arm": arm,
            "adapter": arm,
            "version": 0,
            "task": task,
            "family": task.split("-")[0],
            "level": 1,
            "group": task,
            "attempt": 0,
            "step": 0,
            "temperature": 0.8,
            "score": None if solved is None else float(solved),
            "reward": None if solved is None else float(solved),
            "correct": solved,
            "calls": 2,
            "end": SessionEnd.API_ERROR if solved is None else SessionEnd.FINISHED,
            "error": "",
            "turns": [],
            "verifier_output": "",
            "started": 0.0,
            "seconds": 6.0,
        }
        return Rollout(**(values | other))  # type: ignore[arg-type]

    return make
