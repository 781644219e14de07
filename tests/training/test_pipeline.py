"""The whole way on real parts, small: real pi, sandbox, learner process, a tiny real model."""

import asyncio
from pathlib import Path

import pytest

from harness_adapters.config import ModelSettings, Settings
from harness_adapters.errors import StoreError
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase, Rollout
from harness_adapters.report.page import write_report
from harness_adapters.training.pipeline import evaluate_run, train_and_evaluate, train_run
from harness_adapters.training.run import open_run, reopen_run


async def test_a_run_goes_from_nothing_to_a_report_and_again_without_a_session(
    small: Settings, tmp_path: Path
) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    result = await train_and_evaluate(run, Quiet())
    assert (result.tasks, result.treatment) == (2, "pi")
    assert result.unseen is not None and result.unseen.tasks == 1
    check_groups(run.store.rollouts(phase=Phase.TRAIN, turns=False))
    assert len(run.store.rollouts(phase=Phase.TEST, turns=False)) == 2 * (2 + 1)
    steps = [line for line in run.store.metrics() if "pass_rate" in line]
    assert [line["step"] for line in steps] == [0, 1]
    ratio = "sampling/importance_sampling_ratio/mean"
    if ratio in steps[0]:  # absent by chance (1 in 64): the first coins of each group alike
        assert steps[0][ratio] == pytest.approx(1.0, abs=1e-3)
    best = run.store.fact("best")
    assert (run.root / "adapters" / best["adapter"] / "adapter_model.safetensors").is_file()
    played = {r.adapter for r in run.store.rollouts(phase=Phase.TEST, turns=False)}
    assert played == {"base", best["adapter"]}
    assert "pass@1" in write_report(run.root).read_text()
    before = [r.id for r in run.store.rollouts(turns=False)]
    run.close()

    again = reopen_run(tmp_path / "run")
    await train_and_evaluate(again, Quiet())
    assert [r.id for r in again.store.rollouts(turns=False)] == before
    again.close()


async def test_a_run_with_little_time_trains_less_and_is_evaluated_all_the_same(
    small: Settings, tmp_path: Path
) -> None:
    # One step must find a group that disagrees: of four groups of four, all agree 1 in 4096 times.
    sure = {"groups": 4, "probe_generations": 4}
    settings = small.model_copy(update={"train": small.train.model_copy(update=sure)})
    run = open_run(tmp_path / "run", settings, resume=False)
    result = await train_and_evaluate(run, Quiet(), minutes=0.0)
    assert result.tasks == 2
    assert run.store.fact("trained_steps") == run.store.fact("stopped") == 1
    assert run.store.fact("validated:1") is not None
    before = {r.id for r in run.store.rollouts(turns=False)}
    await train_and_evaluate(run, Quiet(), minutes=0.0)
    assert {r.id for r in run.store.rollouts(turns=False)} == before
    await train_run(run, Quiet())  # without a limit it goes on
    assert run.store.fact("trained_steps") == 2
    assert before < {r.id for r in run.store.rollouts(turns=False)}
    run.close()


def check_groups(sessions: list[Rollout]) -> None:
    """Two steps of three groups: a fourth rollout only where the first three disagree."""
    assert len(sessions) == len({(r.step, r.task, r.attempt) for r in sessions})
    groups: dict[str, dict[int, bool | None]] = {}
    for session in sessions:
        groups.setdefault(session.group, {})[session.attempt] = session.correct
    assert len(groups) == 6
    for outcomes in groups.values():
        agreed = outcomes[0] == outcomes[1] == outcomes[2]
        assert sorted(outcomes) == ([0, 1, 2] if agreed else [0, 1, 2, 3])


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("sampling", marks=pytest.mark.heavy),
        pytest.param("updating", marks=pytest.mark.heavy),
        "validating",
    ],
)
async def test_an_interrupted_run_repeats_and_loses_no_session(
    small: Settings, tmp_path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = asyncio.Event()
    real_update = LearnerClient.update

    async def update(self: LearnerClient, step: int, rollouts: list[str]) -> object:
        result = await real_update(self, step, rollouts)
        if moment == "updating":
            reached.set()  # the learner has checkpointed; the loop hasn't written it down
            await asyncio.sleep(3600)
        return result

    monkeypatch.setattr(LearnerClient, "update", update)
    run = open_run(tmp_path / "run", small, resume=False)
    work = asyncio.create_task(train_and_evaluate(run, Quiet()))
    while not reached.is_set():
        await asyncio.sleep(0.05)
        assert not work.done()
        rollouts = run.store.rollouts(turns=False)
        if moment == "sampling" and any(r.phase is Phase.TRAIN for r in rollouts):
            reached.set()
        if moment == "validating" and any(
            r.phase is Phase.VALIDATION and r.step == 1 for r in rollouts
        ):
            reached.set()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    kept = {r.id for r in run.store.rollouts(turns=False)}
    run.close()
    monkeypatch.setattr(LearnerClient, "update", real_update)

    again = reopen_run(tmp_path / "run")
    await train_and_evaluate(again, Quiet())
    assert kept <= {r.id for r in again.store.rollouts(turns=False)}
    sessions = again.store.rollouts(phase=Phase.TRAIN, turns=False)
    check_groups(sessions)
    validated = again.store.rollouts(phase=Phase.VALIDATION, turns=False)
    assert len(validated) == len({(r.step, r.task) for r in validated}) == 6
    assert [line["step"] for line in again.store.metrics() if "pass_rate" in line] == [0, 1]
    again.close()


async def test_a_run_without_an_adapter_is_not_evaluated(small: Settings, tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    with pytest.raises(StoreError, match="holds no trained adapter yet"):
        await evaluate_run(run, None, Quiet())
    run.close()


def test_a_run_is_not_continued_by_accident_or_with_other_settings(
    small: Settings, tmp_path: Path
) -> None:
    open_run(tmp_path / "run", small, resume=False).close()
    with pytest.raises(StoreError, match="already holds a run: add --resume"):
        open_run(tmp_path / "run", small, resume=False)
    longer = small.model_copy(update={"train": small.train.model_copy(update={"steps": 9})})
    open_run(tmp_path / "run", longer, resume=True).close()
    other = small.model_copy(
        update={"train": small.train.model_copy(update={"learning_rate": 1.0})}
    )
    with pytest.raises(StoreError, match=r"another train\.learning_rate"):
        open_run(tmp_path / "run", other, resume=True)


def test_a_run_keeps_the_number_format_that_it_began_with(
    small: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it goes on upon a machine that would choose another."""
    automatic = small.model_copy(update={"model": ModelSettings(path=small.model.path)})
    monkeypatch.setattr("harness_adapters.engine.precision.native_dtype", lambda: "float32")
    open_run(tmp_path / "run", automatic, resume=False).close()
    monkeypatch.setattr("harness_adapters.engine.precision.native_dtype", lambda: "bfloat16")
    again = open_run(tmp_path / "run", automatic, resume=True)
    assert again.settings.model.dtype == "float32"
    again.close()
    again = reopen_run(tmp_path / "run")
    assert again.settings.model.dtype == "float32"
    again.close()


def test_a_run_is_open_in_one_process_only(small: Settings, tmp_path: Path) -> None:
    run = open_run(tmp_path / "run", small, resume=False)
    with pytest.raises(StoreError, match="in use by another process"):
        reopen_run(tmp_path / "run")
    run.close()
    reopen_run(tmp_path / "run").close()
