"""Two trainers on one engine: two drivers of the real pi, a tiny real model."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness_adapters.config import Settings
from harness_adapters.errors import HarnessError, LearnerError, StoreError
from harness_adapters.harness import registry
from harness_adapters.harness.pi import Pi
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.rollout import stack
from harness_adapters.training.fleet import open_fleet, reopen_fleet, train_fleet
from harness_adapters.training.loop import PolicyVersion
from harness_adapters.training.run import Run


@dataclass(frozen=True, slots=True)
class Twin(Pi):
    """pi under another name, from the same installation."""

    name: str = "twin"

    def installed(self) -> Path:
        """Where pi lies."""
        return Pi().installed()


@pytest.fixture(autouse=True)
def twin(monkeypatch: pytest.MonkeyPatch) -> None:
    """`twin` is a known harness."""
    monkeypatch.setitem(registry._KNOWN, "twin", Twin)


def close(runs: dict[str, Run]) -> None:
    for run in runs.values():
        run.close()


@pytest.mark.heavy  # four learners, some fifty sessions of pi
@pytest.mark.timeout(900)
async def test_one_trainer_dies_the_other_goes_on_and_both_end(
    small: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = []
    real_start, real_update = stack.start_engine, LearnerClient.update

    async def start_engine(*args: object, **options: object) -> object:
        engines.append(await real_start(*args, **options))  # type: ignore[arg-type]
        return engines[-1]

    async def update(self: LearnerClient, step: int, rollouts: list[str]) -> object:
        if "twin" in self._log.name and step == 1:
            self._process.kill()
        return await real_update(self, step, rollouts)

    monkeypatch.setattr(stack, "start_engine", start_engine)
    monkeypatch.setattr(LearnerClient, "update", update)
    runs = open_fleet(tmp_path / "both", small, ["twin", "pi"], resume=False)
    outcomes = await train_fleet(runs, Quiet())
    assert isinstance(outcomes["pi"], PolicyVersion)
    assert isinstance(outcomes["twin"], LearnerError)
    assert runs["pi"].store.fact("trained_steps") == 2
    assert runs["twin"].store.fact("trained_steps") == 1
    assert len(engines) == 1
    kept = {r.id for r in runs["twin"].store.rollouts(turns=False)}
    close(runs)

    monkeypatch.setattr(LearnerClient, "update", real_update)
    runs = reopen_fleet(tmp_path / "both")
    outcomes = await train_fleet(runs, Quiet())
    for name, outcome in outcomes.items():
        assert isinstance(outcome, PolicyVersion) and outcome.path is not None
        assert outcome.name.startswith(f"{name}-v")
        assert (outcome.path / "adapter_model.safetensors").is_file()
        sessions = runs[name].store.rollouts(phase=Phase.TRAIN, turns=False)
        assert {r.harness for r in sessions} == {name}
        assert len(sessions) == len({(r.step, r.task, r.attempt) for r in sessions})
    assert kept <= {r.id for r in runs["twin"].store.rollouts(turns=False)}
    close(runs)


def test_what_does_not_belong_together_is_refused(small: Settings, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="name each harness once"):
        open_fleet(tmp_path / "a", small, ["pi", "pi"], resume=False)
    with pytest.raises(HarnessError, match="no harness 'vim'"):
        open_fleet(tmp_path / "a", small, ["pi", "vim"], resume=False)
    assert not (tmp_path / "a").exists()
    close(open_fleet(tmp_path / "a", small, ["pi", "twin"], resume=False))
    with pytest.raises(StoreError, match="was started with pi, twin"):
        open_fleet(tmp_path / "a", small, ["pi"], resume=True)
    with pytest.raises(StoreError, match="add --resume"):
        open_fleet(tmp_path / "a", small, ["pi", "twin"], resume=False)
    with pytest.raises(StoreError, match="holds the run of one harness"):
        open_fleet(tmp_path / "a" / "pi", small, ["pi", "twin"], resume=False)
    (tmp_path / "a" / "fleet.json").write_text("{")
    with pytest.raises(StoreError, match=r"fleet\.json can't be read"):
        reopen_fleet(tmp_path / "a")
