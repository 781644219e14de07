"""What fits, from a configuration alone: by hand for a tiny model, and by order for large ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.config import LoraSettings, Settings
from harness_adapters.doctor.memory_plan import (
    GIB,
    RUNTIME_GIB,
    engine_gib,
    memory_plan,
    read_shape,
    trainer_gib,
)
from harness_adapters.errors import ModelError

TINY = {
    "model_type": "llama", "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 128,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "tie_word_embeddings": True,
}  # fmt: skip


def save(directory: Path, **changes: Any) -> Path:
    (directory / "config.json").write_text(json.dumps(TINY | changes))
    return directory


def test_a_shape_by_hand(tmp_path: Path) -> None:
    settings = Settings(lora=LoraSettings(rank=2, alpha=4))
    shape = read_shape(save(tmp_path), settings)
    attention = 64 * 64 * 2 + 64 * 32 * 2
    layer = attention + 3 * 64 * 128 + 2 * 64
    assert shape.parameters == 1000 * 64 + 2 * layer + 64
    # rank 2: each matrix in x out has 2 * (in + out) weights
    pairs = 2 * (64 + 64) + 2 * (64 + 32) + 3 * (64 + 128)
    assert shape.adapter == 2 * 2 * pairs
    assert shape.keys_bytes == 2 * 2 * 16 * 2 * 2  # keys and values, heads, size, bytes, layers
    assert engine_gib(shape, settings, sessions=3) == pytest.approx(
        RUNTIME_GIB
        + (shape.parameters * 2 + 4 * shape.adapter * 8 * 2 + 3 * 4096 * 256) / GIB
    )  # fmt: skip


def test_layers_with_windows_or_convolutions_hold_no_long_cache(tmp_path: Path) -> None:
    kinds = ["conv", "full_attention"]
    path = save(tmp_path, model_type="lfm2", layer_types=kinds, block_auto_adjust_ff_dim=False)
    assert read_shape(path, Settings()).keys_bytes == 2 * 2 * 16 * 2


def test_checkpointing_saves_and_longer_prompts_cost(tmp_path: Path) -> None:
    shape = read_shape(save(tmp_path), Settings())
    frugal = trainer_gib(shape, Settings(), 13_000, checkpointing=True)
    assert RUNTIME_GIB < frugal < trainer_gib(shape, Settings(), 13_000, checkpointing=False)
    assert trainer_gib(shape, Settings(), 1_000, checkpointing=True) < frugal


def test_what_fits_is_said_and_what_does_not(tmp_path: Path) -> None:
    path = save(tmp_path)
    small = {check.name: check for check in memory_plan(path, Settings(), gpus=1, gpu_gib=80)}
    assert small["engine"].ok
    assert small["trainer"].ok
    assert "setting" not in small
    large = save(tmp_path, hidden_size=8192, intermediate_size=28_672, num_hidden_layers=80)
    found = {check.name: check for check in memory_plan(large, Settings(), gpus=3, gpu_gib=80)}
    assert not found["engine"].ok
    assert "GiB are needed" in found["engine"].remedy
    assert "train.device=cuda:1; 1 stay free" in found["placement"].detail


def test_a_missing_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        memory_plan(tmp_path / "nowhere", Settings(), gpus=1, gpu_gib=80)
