from pathlib import Path

import pytest

from harness_adapters.config import Settings, load
from harness_adapters.harness.install import install

COIN = """#!/bin/bash
# A tiny random model solves nothing, so chance decides: groups disagree, and weights move.
echo $((RANDOM % 2)) > /logs/verifier/reward.txt
"""


def write_coin(root: Path, family: str, split: str, number: int) -> None:
    """A task that is solved or not by the toss of a coin."""
    task = root / f"{family}-{split}-{number}"
    for name in ("environment/files", "solution", "tests"):
        (task / name).mkdir(parents=True)
    (task / "task.toml").write_text(
        f'version = "1.0"\n[metadata]\nfamily = "{family}"\nlevel = 1\nseed = {number}\n'
        f'split = "{split}"\n'
    )
    (task / "instruction.md").write_text(f"Say something about {family} {split} {number}.\n")
    (task / "solution" / "solve.sh").write_text("#!/bin/bash\ntrue\n")
    (task / "tests" / "test.sh").write_text(COIN)


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    """Six training, two validation and two test tasks of one family, and a test-only family."""
    root = tmp_path / "coins"
    for split, count in (("train", 6), ("validation", 2), ("test", 2)):
        for number in range(count):
            write_coin(root, "coin", split, number)
    write_coin(root, "apart", "test", 0)
    return root


@pytest.fixture
def small(tiny: Path, coins: Path) -> Settings:
    """A whole run in a minute: a tiny random model, two steps of three groups of up to four."""
    install("pi")
    return load(
        None,
        [
            f'model.path="{tiny}"',
            f'tasks.dataset="{coins}"',
            "model.dtype=float32",
            "engine.kind=transformers",
            "budget.max_turns=2",
            "budget.max_tokens_per_turn=12",
            "warm_start.steps=0",
            "lora.rank=2",
            "train.steps=2",
            "train.groups=3",
            "train.num_generations=4",
            "train.probe_generations=3",
            "train.validate_every=1",
            "train.validation_tasks=2",
            "eval.tasks=2",
            "eval.unseen_tasks=1",
            "concurrency=4",
        ],
    )
