"""Number format of the weights: bfloat16 only where the machine multiplies it itself.

A CPU without bfloat16 instructions imitates them: on an AVX2 machine one thread did 1 GFLOPS in
bfloat16 and 72 in float32 (torch 2.13), so that a training step of seconds takes many minutes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from harness_adapters.config import Settings

_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}
"""As /proc/cpuinfo names them, on x86-64 and on arm64."""


def settled(settings: Settings) -> Settings:
    """The same settings with `model.dtype` decided for this machine where it is `auto`."""
    if settings.model.dtype != "auto":
        return settings
    return settings.model_copy(
        update={"model": settings.model.model_copy(update={"dtype": native_dtype()})}
    )


def native_dtype() -> Literal["bfloat16", "float32"]:
    """What this machine multiplies fast: its GPU, or without one its CPU."""
    import torch

    if torch.cuda.is_available():
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    return "bfloat16" if _INSTRUCTIONS & cpu_flags() else "float32"


def cpu_flags(cpuinfo: Path = Path("/proc/cpuinfo")) -> set[str]:
    """Instruction sets of the first processor; empty where the file is missing."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return set(value.split())
    return set()
