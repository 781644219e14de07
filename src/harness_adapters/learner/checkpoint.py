"""Checkpoints of a learner: everything the next step depends on, one file, atomically replaced.

`step-<n>.pt` holds tensors and plain values only and is read without unpickling code.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch

from harness_adapters.errors import LearnerError

KEEP = 2
Tensor: TypeAlias = torch.Tensor


@dataclass(slots=True)
class StepResult:
    """What an update answered; kept so that asking again answers the same."""

    metrics: dict[str, float]
    adapter: str
    version: int


@dataclass(slots=True)
class Checkpoint:
    """State after `step`."""

    step: int
    version: int
    lora: dict[str, Tensor]
    """Float32 masters by parameter name."""
    optimizer: dict[str, Any]
    rng: Tensor
    results: dict[int, StepResult] = field(default_factory=dict[int, StepResult])
    """By step, from the first on."""


def save(folder: Path, checkpoint: Checkpoint) -> Path:
    """Write `folder/step-<n>.pt` durably, then drop all but the last two."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"step-{checkpoint.step:06d}.pt"
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        torch.save(asdict(checkpoint), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    for old in sorted(folder.glob("step-*.pt"))[:-KEEP]:
        old.unlink()
    return path


def latest(folder: Path) -> Checkpoint | None:
    """The newest checkpoint, or None. Raises LearnerError if it can't be read."""
    paths = sorted(folder.glob("step-*.pt"))
    if not paths:
        return None
    try:
        values = torch.load(paths[-1], map_location="cpu", weights_only=True)
        results = {step: StepResult(**result) for step, result in values.pop("results").items()}
        return Checkpoint(**values, results=results)
    except Exception as error:  # torch.load raises whatever a damaged file makes it raise
        raise LearnerError(
            f"checkpoint {paths[-1]} can't be read ({type(error).__name__}); delete it to go on"
            " from the one before"
        ) from error
