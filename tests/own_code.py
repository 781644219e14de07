"""A tiny checkpoint whose architecture lies in Python files of its own, as strangers make them."""

from __future__ import annotations

import json
from pathlib import Path

CONFIGURATION = """
from transformers import LlamaConfig

open({marker!r}, "a").close()


class OwnConfig(LlamaConfig):
    model_type = "own_llama"
"""

MODELING = """
from transformers import LlamaForCausalLM

from .configuration_own import OwnConfig


class OwnForCausalLM(LlamaForCausalLM):
    config_class = OwnConfig
"""

AUTO_MAP = {
    "AutoConfig": "configuration_own.OwnConfig",
    "AutoModelForCausalLM": "modeling_own.OwnForCausalLM",
}


def save_own_code_model(directory: Path, marker: Path, *, model_type: str = "own_llama") -> Path:
    """Save it to `directory`; the file `marker` appears when its code runs.

    With `model_type="llama"` transformers has all the code that the checkpoint brings once more.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=101,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=1,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    file = directory / "config.json"
    changed = json.loads(file.read_text()) | {"model_type": model_type, "auto_map": AUTO_MAP}
    file.write_text(json.dumps(changed | {"architectures": ["OwnForCausalLM"]}))
    (directory / "configuration_own.py").write_text(CONFIGURATION.format(marker=str(marker)))
    (directory / "modeling_own.py").write_text(MODELING)
    words = {f"w{i}": i for i in range(99)} | {"<|im_start|>": 99, "<|im_end|>": 100}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>"],
    ).save_pretrained(directory)
    return directory
