"""Adapters of the tiny random Llama."""

from __future__ import annotations

from pathlib import Path

import pytest

END_IDS = [2]
"""SmolLM2's `<|im_end|>`."""


@pytest.fixture(scope="session", autouse=True)
def single_threaded() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def adapters(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three different random adapters: two tenants' first versions and a second version."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    made: dict[str, Path] = {}
    for seed, name in enumerate(("pi-v1", "hermes-v1", "pi-v2")):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(tiny, dtype=torch.float32)
        shape = LoraConfig(r=8, lora_alpha=16, target_modules="all-linear")
        adapted = get_peft_model(model, shape)
        for key, weight in adapted.named_parameters():
            if "lora_B" in key:
                torch.nn.init.normal_(weight, std=0.1)
        made[name] = tmp_path_factory.mktemp("adapters") / name
        adapted.save_pretrained(made[name])
    return made
