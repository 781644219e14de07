"""Adapters and runs as a training leaves them, small: a tiny random model, a run's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_adapters.config import Settings, load
from harness_adapters.harness.install import install
from harness_adapters.training.run import open_run
from training.conftest import write_coin


def save_adapter(model: Path, directory: Path, seed: int) -> Path:
    """A LoRA adapter of a model with random weights, as PEFT saves it."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    network = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    shape = LoraConfig(r=2, lora_alpha=4, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = get_peft_model(network, shape)
    with torch.no_grad():
        for name, weights in adapted.named_parameters():
            if "lora_B" in name:
                weights.normal_(std=0.05)
    adapted.save_pretrained(directory)
    return directory


@pytest.fixture
def coins(tmp_path: Path) -> Path:
    """Four training, two validation and four test tasks, decided by the toss of a coin."""
    root = tmp_path / "coins"
    for split, count in (("train", 4), ("validation", 2), ("test", 4)):
        for number in range(count):
            write_coin(root, "coin", split, number)
    return root


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """Three further tasks that no training has seen."""
    root = tmp_path / "fresh"
    for number in range(3):
        write_coin(root, "fresh", "test", number)
    return root


@pytest.fixture
def settings(tiny: Path, coins: Path) -> Settings:
    """Sessions of a second or two."""
    install("pi")
    return load(
        None,
        [
            f'model.path="{tiny}"',
            f'tasks.dataset="{coins}"',
            "model.dtype=float32",
            "engine.kind=transformers",
            "budget.max_turns=2",
            "budget.max_tokens_per_turn=8",
            "warm_start.steps=0",
            "lora.rank=2",
            "eval.tasks=4",
            "concurrency=3",
        ],
    )


@pytest.fixture
def trained(settings: Settings, tiny: Path, tmp_path: Path) -> Path:
    """A run directory whose training has ended with the adapter `pi-v2`."""
    root = tmp_path / "trained"
    run = open_run(root, settings, resume=False)
    save_adapter(tiny, root / "adapters" / "pi-v2", seed=2)
    run.store.set_fact("model_dir", str(tiny))
    run.store.set_fact("best", {"step": 2, "adapter": "pi-v2", "version": 2, "validation": 0.5})
    run.close()
    return root


@pytest.fixture
def stray(tiny: Path, tmp_path: Path) -> Path:
    """An adapter that nothing is known of."""
    return save_adapter(tiny, tmp_path / "stray", seed=3)
