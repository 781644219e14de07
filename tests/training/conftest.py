from pathlib import Path

import pytest

from engine.conftest import smollm2, tiny  # noqa: F401 - fixtures
from harness_adapters.config import Settings, load
from harness_adapters.harness.install import install


@pytest.fixture
def small(tiny: Path) -> Settings:  # noqa: F811
    """A whole run in a minute: a tiny random model, one family, two steps."""
    install("pi")
    return load(
        None,
        [
            f'model.path="{tiny}"',
            "model.dtype=float32",
            "engine.kind=transformers",
            "budget.max_turns=2",
            "budget.max_tokens_per_turn=24",
            "warm_start.steps=2",
            "warm_start.batch=2",
            "warm_start.demonstrations=3",
            'tasks.families=["write_text"]',
            "tasks.train=6",
            "tasks.validation=3",
            "tasks.test=21",
            "train.steps=2",
            "train.groups=2",
            "train.num_generations=2",
            "train.validate_every=2",
            "train.validation_tasks=2",
            "eval.tasks=2",
            "eval.unseen_tasks=1",
            "eval.raw_tasks=1",
            "concurrency=2",
        ],
    )
