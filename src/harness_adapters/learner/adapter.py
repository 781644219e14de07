"""Publishing an adapter: a PEFT directory that appears whole, under a new name per version."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from peft.utils import set_peft_model_state_dict
from safetensors.torch import load_file

from harness_adapters.errors import LearnerError

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"


def adapter_name(harness: str, version: int) -> str:
    """Engines key caches by name, so a version never reuses one."""
    return f"{harness}-v{version}"


def publish(model: Any, adapters: Path, name: str) -> Path:
    """Write `adapters/name` (PEFT config and safetensors): whole or not at all.

    A directory of that name is left by a step that was killed before it answered: nobody was told
    of it, and it is replaced.
    """
    target, temporary = adapters / name, adapters / f".{name}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    adapters.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(temporary, save_embedding_layers=False)
    (temporary / "README.md").unlink(missing_ok=True)
    (temporary / WEIGHTS).chmod(
        0o644
    )  # safetensors makes it private; the engine may be another user
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
    return target


def is_published(path: Path) -> bool:
    """Whether `path` holds a whole adapter."""
    return (path / WEIGHTS).is_file() and (path / CONFIG).is_file()


def load_weights(model: Any, directory: Path) -> None:
    """Put a published adapter's weights into `model`'s live adapter. Raises LearnerError."""
    try:
        weights = load_file(str(directory / WEIGHTS))
    except (OSError, ValueError) as error:
        raise LearnerError(f"adapter {directory} can't be read: {error}") from None
    result = set_peft_model_state_dict(model, weights)
    if result.unexpected_keys:
        raise LearnerError(f"adapter {directory} has weights that this model lacks; wrong base?")
