"""Loading the base model and wrapping it in a LoRA adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from harness_adapters.config import LoraSettings
from harness_adapters.engine.models import load_with_own_code, profile_of
from harness_adapters.errors import ModelError


def pick_device(name: str) -> torch.device:
    """`auto` is the GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise ModelError(f"device {name!r}: {error}".splitlines()[0]) from None


def load_base(
    directory: Path, *, dtype: str, device: str = "auto", trust_remote_code: bool = False
) -> Any:
    """The causal language model in a Hugging Face directory, in training mode without dropout.

    `trust_remote_code` lets a checkpoint that needs Python files of its own run them. Raises
    ModelError.
    """
    if not (directory / "config.json").is_file():
        raise ModelError(f"{directory} is not a model directory (no config.json in it)")
    try:
        model = load_with_own_code(
            lambda trust: AutoModelForCausalLM.from_pretrained(
                str(directory),
                dtype=getattr(torch, dtype),
                local_files_only=True,
                trust_remote_code=trust,
            ),
            directory,
            allowed=trust_remote_code,
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
        raise ModelError(f"{directory} can't be loaded: {str(error).splitlines()[0]}") from None
    model.config.use_cache = False
    return model.to(pick_device(device)).train()


def add_lora(base: Any, settings: LoraSettings, *, seed: int) -> Any:
    """Wrap in a fresh adapter (B = 0: it changes nothing yet), in the base's own dtype.

    `settings.targets`: module names, PEFT's `all-linear`, or `auto` for what the model's family is
    known to take. Raises ModelError when none of them fits.
    """
    targets = settings.targets
    if targets == "auto":
        chosen = profile_of(base.config.model_type).lora_targets
        targets = chosen if isinstance(chosen, str) else list(chosen)
    torch.manual_seed(seed)
    config = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(base, config, autocast_adapter_dtype=False)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"lora.targets = {settings.targets!r} don't fit: {reason}") from None
