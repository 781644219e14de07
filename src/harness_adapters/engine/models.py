"""Model profiles: what differs between model families.

A family is read from `config.json`; a model of no known family gets the generic profile and works
as long as its tokenizer has a chat template. What a profile can't know (does this checkpoint know
its own tool tags?) is looked up in the weights. Python files that come with a checkpoint are a
stranger's code: they run only where the user has said so, and only where they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
    """PEFT `target_modules` for `lora.targets = "auto"`: `all-linear`, or module names."""
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
        ModelProfile(Family.LFM3, CallFormat.PYTHONIC, _LFM_TARGETS),
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


def profile_of(model_type: str) -> ModelProfile:
    """The profile for a `model_type` of config.json; the generic one where it isn't known."""
    try:
        return PROFILES[Family(model_type)]
    except ValueError:
        return PROFILES[Family.GENERIC]


def load_profile(model_dir: Path) -> ModelProfile:
    """The profile of the model's family."""
    return profile_of(str(read_config(model_dir).get("model_type", "")))


def load_chat_format(model_dir: Path, trust_remote_code: bool = False) -> ChatFormat:
    """How to talk to the model in `model_dir`.

    Raises ModelError when its tokenizer is missing, or when the model (which is looked at first of
    all here) needs Python files of its own and `trust_remote_code` doesn't allow them.
    """
    from harness_adapters.engine.chat import TemplateChat

    _check_config(model_dir, trust_remote_code)
    return TemplateChat.load(model_dir, load_profile(model_dir), trust_remote_code)


_Loaded = TypeVar("_Loaded")


def load_with_own_code(
    load: Callable[[bool], _Loaded], model_dir: Path, *, allowed: bool
) -> _Loaded:
    """What `load` gives; its argument is transformers' `trust_remote_code`.

    First without the checkpoint's own Python files: many name some in `auto_map` that transformers
    has long had itself. Where it needs them, and the user allowed it, again with them. Raises
    ModelError where it needs them and may not, and when they fail; else what `load` raises.
    """
    try:
        return load(False)
    except ValueError as error:
        # transformers' only sign; the test with such a checkpoint finds out when it changes.
        if "trust_remote_code" not in str(error):
            raise
    if not allowed:
        raise ModelError(
            f"{model_dir}: needs Python files of its own (auto_map), and running them is running "
            "their author's code: read them, then allow it with model.trust_remote_code = true"
        )
    try:
        return load(True)
    except Exception as error:  # a stranger's code may raise anything
        first = (str(error).splitlines() or ["no message"])[0]
        raise ModelError(
            f"{model_dir}: its own Python files fail: {type(error).__name__}: {first}"
        ) from error


def _check_config(model_dir: Path, trust_remote_code: bool) -> None:
    """Load the config where it names own code: tokenizers don't need it, and servers fail late."""
    if not read_config(model_dir).get("auto_map"):
        return
    from transformers import AutoConfig

    try:
        load_with_own_code(
            lambda trust: AutoConfig.from_pretrained(model_dir, trust_remote_code=trust),
            model_dir,
            allowed=trust_remote_code,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        first = (str(error).splitlines() or ["no message"])[0]
        raise ModelError(f"{model_dir}: transformers can't read config.json: {first}") from None


def has_own_code(model_dir: Path) -> bool:
    """Whether config or tokenizer name Python files that come with the checkpoint."""
    try:
        tokenizer = json.loads((model_dir / "tokenizer_config.json").read_text())
    except (OSError, ValueError):
        tokenizer = {}
    parts = (read_config(model_dir), tokenizer if isinstance(tokenizer, dict) else {})
    return any(bool(part.get("auto_map")) for part in parts)


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
