"""The whole way on real parts, small: real pi, sandbox, learner process, a tiny real model."""

import asyncio
from pathlib import Path

import pytest

from harness_adapters.config import Settings
from harness_adapters.errors import StoreError
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.report.page import write_report
from harness_adapters.training.pipeline import train_and_evaluate
from harness_adapters.training.run import Run, open_run, reopen_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches of their own, with the installed harness."""
    from harness_adapters.paths import data_dir

    harnesses = data_dir() / "harnesses"
    own = tmp_path / "home"
    own.mkdir()
    (own / "harnesses").symlink_to(harnesses)
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(own))


def counts(run: Run) -> dict[str, int]:
    return {
        phase: len(run.store.rollouts(phase=phase, turns=False))
        for phase in (Phase.TRAIN, Phase.VALIDATION, Phase.TEST)
    }


async def test_a_run_goes_from_nothing_to_a_report_and_again_without_a_session(
    small: Settings, home: None, tmp_path: Path
) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    result = await train_and_evaluate(run, Quiet())
    assert result.tasks == 2
    expected = {Phase.TRAIN: 2 * 2 * 2, Phase.TEST: 1 + 2 * (2 + 1)}
    found = counts(run)
    assert {phase: found[phase] for phase in expected} == expected
    assert found[Phase.VALIDATION] in (2, 4), "the base, and the adapter where a step moved it"
    steps = [line["step"] for line in run.store.metrics() if "loss" in line or "reward" in line]
    assert steps == [0, 1]
    assert {turn.version for r in run.store.rollouts(phase=Phase.TRAIN) for turn in r.turns}
    assert write_report(run.root).read_text().startswith("<!doctype html>")
    before = [r.id for r in run.store.rollouts(turns=False)]
    run.store.close()

    again = reopen_run(tmp_path / "run")
    await train_and_evaluate(again, Quiet())
    assert [r.id for r in again.store.rollouts(turns=False)] == before
    again.store.close()


async def test_an_interrupted_run_repeats_no_session(
    small: Settings, home: None, tmp_path: Path
) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    work = asyncio.create_task(train_and_evaluate(run, Quiet()))
    while not run.store.rollouts(phase=Phase.TRAIN, turns=False):
        await asyncio.sleep(0.05)
        assert not work.done()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    kept = {r.id for r in run.store.rollouts(turns=False)}
    run.store.close()

    again = reopen_run(tmp_path / "run")
    await train_and_evaluate(again, Quiet())
    sessions = again.store.rollouts(phase=Phase.TRAIN, turns=False)
    assert kept <= {r.id for r in again.store.rollouts(turns=False)}
    assert len(sessions) == 8
    assert len({(r.step, r.task, r.attempt) for r in sessions}) == 8
    again.store.close()


def test_a_run_is_not_continued_by_accident_or_with_other_settings(
    small: Settings, home: None, tmp_path: Path
) -> None:
    open_run(tmp_path / "run", small, resume=False).store.close()
    with pytest.raises(StoreError, match="already holds a run: add --resume"):
        open_run(tmp_path / "run", small, resume=False)
    longer = small.model_copy(update={"train": small.train.model_copy(update={"steps": 9})})
    open_run(tmp_path / "run", longer, resume=True).store.close()
    other = small.model_copy(
        update={"train": small.train.model_copy(update={"learning_rate": 1.0})}
    )
    with pytest.raises(StoreError, match=r"another train\.learning_rate"):
        open_run(tmp_path / "run", other, resume=True)
