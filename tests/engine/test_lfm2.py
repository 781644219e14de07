"""LFM2: short convolutions beside attention, on a tiny random model, through both engines."""

import asyncio
import shutil
from pathlib import Path

import pytest

from harness_adapters.config import EngineSettings
from harness_adapters.engine.canary import CanaryReport, canary, reference_logprobs
from harness_adapters.engine.models import load_chat_format, load_profile
from harness_adapters.engine.start import start_engine


@pytest.fixture(scope="module")
def lfm2(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model directory and an adapter on all its profile's targets."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import Lfm2Config, Lfm2ForCausalLM

    torch.manual_seed(0)
    config = Lfm2Config(
        vocab_size=49152,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        layer_types=["conv", "full_attention", "conv", "full_attention"],
        initializer_range=0.2,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    model, adapter = tmp_path_factory.mktemp("lfm2"), tmp_path_factory.mktemp("lfm2-adapter")
    network = Lfm2ForCausalLM(config)
    network.save_pretrained(model)
    for file in [*smollm2.glob("tokenizer*"), smollm2 / "chat_template.jinja"]:
        shutil.copy(file, model)
    targets = load_profile(model).lora_targets
    assert not isinstance(targets, str)
    adapted = get_peft_model(network, LoraConfig(r=8, lora_alpha=16, target_modules=list(targets)))
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    adapted.save_pretrained(adapter)
    return model, adapter


async def agreement(kind: str, model: Path, adapter: Path, log_dir: Path) -> CanaryReport:
    settings = EngineSettings(kind=kind, max_context=1024, max_loras=1, kv_cache_gib=1.0)  # type: ignore[arg-type]
    engine = await start_engine(settings, model, log_dir=log_dir, dtype="float32")
    try:
        await engine.load_adapter("pi-v1", adapter)
        reference = reference_logprobs(model, "float32")
        chat = load_chat_format(model)
        return await canary(engine, chat, reference, {"pi-v1": adapter}, dtype="float32")
    finally:
        await engine.close()


@pytest.mark.parametrize("kind", ["transformers", pytest.param("vllm", marks=pytest.mark.heavy)])
def test_engine_and_trainer_agree(kind: str, lfm2: tuple[Path, Path], tmp_path: Path) -> None:
    report = asyncio.run(agreement(kind, *lfm2, tmp_path))
    assert report.max_difference < 1e-3
