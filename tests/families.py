"""Tiny random checkpoints of the architectures that are trained, with SmolLM2's tokenizer.

The one like LFM3 brings Python files of its own, as the real one does: short convolutions of kernel
7, attention of which some layers see 256 tokens, the others all.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

VOCABULARY = 49_152
COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    # Wide enough that the model has preferences: a flat distribution would hide faults.
    "initializer_range": 0.2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 2,
}
HYBRID = ["conv", "full_attention", "conv", "full_attention"]

LFM3_CONFIGURATION = """
from transformers import Lfm2Config


class Lfm3Config(Lfm2Config):
    model_type = "lfm3"
"""

LFM3_MODELING = """
import torch
from transformers import Lfm2ForCausalLM
from transformers.models.lfm2.modeling_lfm2 import Lfm2Attention

from .configuration_lfm3 import Lfm3Config


class WindowedAttention(Lfm2Attention):
    def forward(self, hidden_states, *, attention_mask=None, past_key_values=None,
                position_ids=None, **extra):
        window = self.config.sliding_window
        if extra.get("tree") is None:
            count = hidden_states.shape[1]
            if past_key_values is not None:
                count += past_key_values.get_seq_length(self.layer_idx)
            back = position_ids[0, :, None] - torch.arange(count)
            seen = (back >= 0) & (back < window)
            mask = torch.zeros(seen.shape, dtype=hidden_states.dtype)
            attention_mask = mask.masked_fill(~seen, float("-inf"))[None, None]
        return super().forward(
            hidden_states=hidden_states, attention_mask=attention_mask,
            past_key_values=past_key_values, sliding_window=window, **extra,
        )


class Lfm3ForCausalLM(Lfm2ForCausalLM):
    config_class = Lfm3Config

    def __init__(self, config):
        super().__init__(config)
        for layer in config.windowed_layers:
            self.model.layers[layer].self_attn.__class__ = WindowedAttention
"""


def save_family(name: str, directory: Path, smollm2: Path) -> Path:
    """`llama`, `lfm2_moe` or `lfm3` to `directory`."""
    import torch
    from transformers import (
        Lfm2Config,
        Lfm2ForCausalLM,
        Lfm2MoeConfig,
        Lfm2MoeForCausalLM,
        LlamaConfig,
        LlamaForCausalLM,
    )

    torch.manual_seed(0)
    network: Any
    if name == "llama":
        network = LlamaForCausalLM(LlamaConfig(**COMMON, num_hidden_layers=2))
    elif name == "lfm2_moe":
        experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64}
        shape = {"num_hidden_layers": 4, "layer_types": HYBRID, "num_dense_layers": 1}
        network = Lfm2MoeForCausalLM(Lfm2MoeConfig(**COMMON, **shape, **experts))
    else:
        shape = {"num_hidden_layers": 4, "layer_types": HYBRID, "conv_L_cache": 7}
        network = Lfm2ForCausalLM(Lfm2Config(**COMMON, **shape))
    network.save_pretrained(directory)
    if name == "lfm3":
        _bring_own_code(directory)
    for file in [*smollm2.glob("tokenizer*"), smollm2 / "chat_template.jinja"]:
        shutil.copy(file, directory)
    return directory


def _bring_own_code(directory: Path) -> None:
    file = directory / "config.json"
    changed = json.loads(file.read_text()) | {
        "model_type": "lfm3",
        "architectures": ["Lfm3ForCausalLM"],
        "sliding_window": 256,
        "windowed_layers": [3],
        "auto_map": {
            "AutoConfig": "configuration_lfm3.Lfm3Config",
            "AutoModelForCausalLM": "modeling_lfm3.Lfm3ForCausalLM",
        },
    }
    file.write_text(json.dumps(changed))
    (directory / "configuration_lfm3.py").write_text(LFM3_CONFIGURATION)
    (directory / "modeling_lfm3.py").write_text(LFM3_MODELING)
