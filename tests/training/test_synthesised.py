"""Training on tasks that were made from sessions: the committed example data set."""

from pathlib import Path

import pytest

from harness_adapters.config import load
from harness_adapters.errors import LearnerError
from harness_adapters.harness.install import install
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.training.pipeline import train_run
from harness_adapters.training.run import open_run

EXAMPLES = Path(__file__).parents[2] / "examples" / "dataset"


@pytest.mark.heavy
async def test_every_session_on_the_example_data_set_is_scored(tiny: Path, tmp_path: Path) -> None:
    """A tiny random model solves none of them: the verifiers say so, and none breaks."""
    install("pi")
    settings = load(
        None,
        [
            f'model.path="{tiny}"',
            f'tasks.dataset="{EXAMPLES}"',
            "model.dtype=float32",
            "engine.kind=transformers",
            "budget.max_turns=2",
            "budget.max_tokens_per_turn=12",
            "warm_start.steps=0",
            "lora.rank=2",
            "train.steps=1",
            "train.groups=2",
            "train.num_generations=2",
            "train.probe_generations=2",
            "train.validation_tasks=1",
            "concurrency=2",
        ],
    )
    run = open_run(tmp_path / "run", settings, resume=False)
    with pytest.raises(LearnerError, match="no group of rollouts disagreed"):
        await train_run(run, Quiet())
    sessions = run.store.rollouts(turns=False)
    run.close()
    phases = {each.phase for each in sessions}
    assert phases == {Phase.TRAIN, Phase.VALIDATION}
    assert {(each.score, each.error) for each in sessions} == {(0.0, "")}
