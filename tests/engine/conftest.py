"""Real parts for the engine's tests: the embedded model, and a tiny random Llama with adapters."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.engine.embedded import prepare

END_IDS = [2]
"""SmolLM2's `<|im_end|>`."""


@pytest.fixture(scope="session", autouse=True)
def single_threaded() -> None:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The embedded model, converted for these tests from the installed package."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path_factory.mktemp("home")))
        yield prepare("smollm2")


@pytest.fixture(scope="session")
def tiny(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama with SmolLM2's tokenizer, float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        # Wide enough that the model has preferences: a flat distribution would hide faults.
        initializer_range=0.2,
    )
    directory = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(directory)
    for file in smollm2.glob("tokenizer*"):
        shutil.copy(file, directory)
    shutil.copy(smollm2 / "chat_template.jinja", directory)
    return directory


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
