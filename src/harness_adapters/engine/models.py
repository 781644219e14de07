"""Model profiles: what differs between model families.

A family is read from `config.json`; a model of no known family gets the generic profile and works
as long as its tokenizer has a chat template. What a profile can't know (does this checkpoint know
its own tool tags?) is looked up in the weights.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_adapters.engine.calls import CallFormat
from harness_adapters.errors import ModelError

if TYPE_CHECKING:
    from harness_adapters.engine import ChatFormat


class Family(StrEnum):
    """Architectures that are known by name."""

    LLAMA = "llama"
    QWEN2 = "qwen2"
    LFM2 = "lfm2"
    LFM2_MOE = "lfm2_moe"
    LFM3 = "lfm3"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """How to serve, prompt and adapt one model family."""

    family: Family
    call_format: CallFormat
    """Used with the model's own template; a template without tools is replaced by ours."""
    lora_targets: str | tuple[str, ...]
    """PEFT `target_modules`: `all-linear`, or module names."""
    trust_remote_code: bool = False
    """The architecture lives in the checkpoint's own Python files."""
    vllm_config_fields: tuple[tuple[str, str], ...] = ()
    """Fields vLLM wants in config.json, each with the field it equals when missing."""


# Attention and MLP of LFM2; its gated short convolution adds in_proj (and shares out_proj).
_LFM_TARGETS = ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj", "w1", "w2", "w3")

PROFILES: dict[Family, ModelProfile] = {
    profile.family: profile
    for profile in (
        ModelProfile(Family.LLAMA, CallFormat.HERMES, "all-linear"),
        ModelProfile(Family.QWEN2, CallFormat.HERMES, "all-linear"),
        ModelProfile(
            Family.LFM2,
            CallFormat.PYTHONIC,
            _LFM_TARGETS,
            vllm_config_fields=(("conv_dim", "hidden_size"), ("block_dim", "hidden_size")),
        ),
        # Experts and router stay frozen: w1..w3 of a routed expert see few tokens per step.
        ModelProfile(
            Family.LFM2_MOE,
            CallFormat.PYTHONIC,
            ("q_proj", "k_proj", "v_proj", "out_proj", "in_proj"),
            vllm_config_fields=(("conv_dim", "hidden_size"), ("block_dim", "hidden_size")),
        ),
        ModelProfile(Family.LFM3, CallFormat.PYTHONIC, _LFM_TARGETS, trust_remote_code=True),
        ModelProfile(Family.GENERIC, CallFormat.HERMES, "all-linear"),
    )
}


def read_config(model_dir: Path) -> dict[str, Any]:
    """`config.json` of a model directory. Raises ModelError when it can't be read."""
    try:
        config = json.loads((model_dir / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise ModelError(f"{model_dir}: config.json can't be read: {error}") from None
    if not isinstance(config, dict):
        raise ModelError(f"{model_dir}: config.json is not a JSON object")
    return config


def load_profile(model_dir: Path) -> ModelProfile:
    """The profile of the model's family."""
    kind = str(read_config(model_dir).get("model_type", ""))
    try:
        return PROFILES[Family(kind)]
    except ValueError:
        return PROFILES[Family.GENERIC]


def load_chat_format(model_dir: Path) -> ChatFormat:
    """How to talk to the model in `model_dir`. Raises ModelError when its tokenizer is missing."""
    from harness_adapters.engine.chat import TemplateChat

    return TemplateChat.load(model_dir, load_profile(model_dir))


TWINS = 8
"""A token with this many near-equal embedding rows (itself included) was never trained."""

NEAR = 0.05
"""Rows are near-equal when their distance is under this share of the token's own length: trained
tokens have no such neighbour, and quantised copies of one untrained row stay well below it."""


def untrained_tokens(model_dir: Path, ids: list[int]) -> list[int]:
    """Those of `ids` whose embedding nearly equals many others': the model can't tell them apart.

    Training initialises or decays unused rows alike. A call format made of such tokens can't be
    learned by a LoRA adapter, which leaves the embedding as it is.
    """
    from safetensors import safe_open

    for file in sorted(model_dir.glob("*.safetensors")) if ids else []:
        with safe_open(str(file), framework="pt") as tensors:
            names = [n for n in tensors.keys() if n.endswith("embed_tokens.weight")]  # noqa: SIM118
            if names:
                table = tensors.get_tensor(names[0])
                return [i for i in ids if i < len(table) and _twins(table, table[i]) >= TWINS]
    return []


def _twins(table: Any, row: Any) -> int:
    """Rows of `table` that are near-equal to `row`; in chunks, to keep the float32 copy small."""
    row = row.float()
    limit = NEAR * row.norm() + 1e-9
    chunks = (table[start : start + 16_384] for start in range(0, len(table), 16_384))
    return sum(int(((chunk.float() - row).norm(dim=1) <= limit).sum()) for chunk in chunks)
