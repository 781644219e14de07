"""How a managed vLLM server is started: options, command line, environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from harness_adapters.engine import BASE


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How a managed server is started; see the user's `EngineSettings` for the meanings."""

    dtype: str = "bfloat16"
    max_context: int = 4096
    max_loras: int = 4
    max_lora_rank: int = 16
    threads: int = 1
    kv_cache_gib: float = 2.0
    max_sequences: int = 64
    """Requests computed in one step; more wait."""
    device: str = "cpu"
    """`cpu` or `cuda`."""
    trust_remote_code: bool = False
    config_fields: dict[str, object] = field(default_factory=dict[str, object])
    """Laid over the model's config.json, for what vLLM misses there."""
    gpu_memory_share: float = 0.85
    """Share of a GPU's memory that the server may take; the trainer lives in the rest."""


def server_arguments(model_dir: Path, port: int, options: ServerOptions) -> list[str]:
    """vLLM's command line for these options."""
    arguments = ["--model", str(model_dir), "--served-model-name", BASE]
    arguments += ["--host", "127.0.0.1", "--port", str(port), "--dtype", options.dtype]
    arguments += ["--max-model-len", str(options.max_context)]
    arguments += ["--max-num-seqs", str(options.max_sequences)]
    arguments += ["--enable-lora", "--max-loras", str(options.max_loras)]
    arguments += ["--max-cpu-loras", str(4 * options.max_loras)]
    arguments += ["--max-lora-rank", str(options.max_lora_rank)]
    arguments += ["--enable-prefix-caching", "--enable-prompt-tokens-details"]
    arguments += ["--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
    arguments += ["--disable-uvicorn-access-log"]
    if options.trust_remote_code:
        arguments.append("--trust-remote-code")
    if options.config_fields:
        arguments += ["--hf-overrides", json.dumps(options.config_fields)]
    if options.device == "cpu":
        # Compilation takes most of a minute and gains nothing on small models.
        arguments += ["--enforce-eager", "--distributed-executor-backend", "uni"]
        # Only whole blocks are found again: with the CPU's default of 128 tokens, much of what a
        # turn adds to its history would be computed twice.
        arguments += ["--block-size", "32"]
    else:
        arguments += ["--gpu-memory-utilization", str(options.gpu_memory_share)]
    return arguments


def server_environment(options: ServerOptions) -> dict[str, str]:
    """The server's environment: ours, no telemetry, no network, adapters loadable at run time."""
    environment = dict(os.environ)
    environment |= {
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1",
        "VLLM_PLUGINS": "harness_adapters_cpu_lora",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONUNBUFFERED": "1",
    }
    if options.device == "cpu":
        environment |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(options.threads),
            # Threads that spin while they wait take the processor from agents and learner.
            "OMP_WAIT_POLICY": "passive",
            "GOMP_SPINCOUNT": "0",
            "VLLM_CPU_KVCACHE_SPACE": str(max(1, round(options.kv_cache_gib))),
            "VLLM_HOST_IP": "127.0.0.1",
        }
    return environment
