"""What of a model fits on GPUs: engine and trainer, from the model's shape alone.

Weights are counted exactly, on a model without storage. The rest is estimated from layer shapes:
bfloat16 weights and activations, float32 masters and Adam moments of the adapter. It is arithmetic;
nothing is started, and no GPU was asked how far it is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.config import Settings
from harness_adapters.doctor.check import Check, Importance
from harness_adapters.engine.models import load_with_own_code, profile_of
from harness_adapters.errors import ModelError

GIB = 2**30
BYTES = 2  # bfloat16
RUNTIME_GIB = 2.0
"""CUDA context, allocator and kernels of one process."""
CHUNK_OF_LOGITS = 128


@dataclass(frozen=True, slots=True)
class Shape:
    """What memory depends on."""

    family: str
    parameters: int
    """Of the base."""
    adapter: int
    """Weights of the adapter."""
    layers: int
    hidden: int
    wide: int
    """Numbers that a layer keeps for one token's backward pass."""
    vocabulary: int
    keys_bytes: int
    """Bytes that the engine's cache holds of one token, in layers without a window."""


def read_shape(model_dir: Path, settings: Settings) -> Shape:
    """Count a model by its config.json; weights need not be there. Raises ModelError."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from harness_adapters.learner.model import add_lora

    if not (model_dir / "config.json").is_file():
        raise ModelError(f"{model_dir} is not a model directory (no config.json in it)")
    allowed = settings.model.trust_remote_code

    def build(trust: bool) -> Any:
        config = AutoConfig.from_pretrained(model_dir, trust_remote_code=trust)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, trust_remote_code=trust)

    try:
        base = load_with_own_code(build, model_dir, allowed=allowed)
    except (OSError, ValueError, KeyError, ImportError, AttributeError, TypeError) as error:
        first = (str(error).splitlines() or ["no message"])[0]
        raise ModelError(f"{model_dir}: transformers can't build the model: {first}") from None
    config = base.config
    parameters = sum(p.numel() for p in base.parameters())
    with torch.device("meta"):
        adapted = add_lora(base, settings.lora, seed=0)
    adapter = sum(p.numel() for n, p in adapted.named_parameters() if "lora_" in n)
    hidden, heads = config.hidden_size, config.num_attention_heads
    size = getattr(config, "head_dim", None) or hidden // heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    full = sum(kind == "full_attention" for kind in kinds)
    inner = getattr(config, "intermediate_size", None) or 4 * hidden
    if experts := getattr(config, "num_experts_per_tok", None):
        inner = experts * (getattr(config, "moe_intermediate_size", None) or inner)
    return Shape(
        family=str(config.model_type),
        parameters=parameters,
        adapter=adapter,
        layers=config.num_hidden_layers,
        hidden=hidden,
        wide=8 * hidden + 2 * (heads + 2 * groups) * size + 4 * inner,
        vocabulary=config.vocab_size,
        keys_bytes=2 * groups * size * BYTES * full,
    )


def engine_gib(shape: Shape, settings: Settings, sessions: int) -> float:
    """Weights, adapters, and the cache of so many whole sessions that share nothing."""
    engine = settings.engine
    adapters = engine.max_loras * shape.adapter * engine.max_lora_rank / settings.lora.rank * BYTES
    cache = sessions * engine.max_context * shape.keys_bytes
    return (shape.parameters * BYTES + adapters + cache) / GIB + RUNTIME_GIB


def trainer_gib(shape: Shape, settings: Settings, trunk: int, *, checkpointing: bool) -> float:
    """Base, adapter with masters, gradients and moments, one trunk and one micro-batch."""
    tokens = trunk + settings.train.token_budget
    kept = shape.layers * shape.hidden if checkpointing else shape.layers * shape.wide
    passing = shape.wide if checkpointing else 0  # the layer that is computed again
    logits = 3 * CHUNK_OF_LOGITS * shape.vocabulary * 4
    states = trunk * shape.keys_bytes * 2  # and their gradients
    weights = shape.parameters * BYTES + shape.adapter * (BYTES + 4 * 4)
    return (weights + tokens * (kept + passing) * BYTES + logits + states) / GIB + RUNTIME_GIB


def memory_plan(
    model_dir: Path, settings: Settings, *, gpus: int, gpu_gib: float, trunk: int = 13_000
) -> list[Check]:
    """Whether engine and trainer fit on `gpus` GPUs of `gpu_gib` GiB each.

    One run uses two at most: the engine has the first, the trainer the second, or both share one.
    `trunk` is the harness's prompt in tokens (the longest of the three stock ones by default).
    """
    shape = read_shape(model_dir, settings)
    profile = profile_of(shape.family)
    calls = f"calls as {profile.call_format}, adapter of {shape.adapter / 1e6:.1f} M weights"
    found = [Check("model", True, f"{shape.family}, {shape.parameters / 1e9:.2f} B; {calls}")]
    sessions = settings.concurrency
    serve = engine_gib(shape, settings, sessions)
    plain, frugal = (
        trainer_gib(shape, settings, trunk, checkpointing=way) for way in (False, True)
    )
    beside = serve if gpus == 1 else 0.0
    found.append(
        _fits("engine", serve, gpu_gib, f"{sessions} sessions of {settings.engine.max_context}")
    )
    label = f"prompt of {trunk:,} tokens"
    if beside + plain <= gpu_gib:
        found.append(_fits("trainer", beside + plain, gpu_gib, label))
    else:
        checked = _fits("trainer", beside + frugal, gpu_gib, f"{label}, gradient checkpointing")
        found.append(checked)
        if checked.ok:
            remedy = "train with --set train.gradient_checkpointing=true"
            found.append(
                Check("setting", False, f"without it {plain:.1f} GiB", remedy, Importance.WISHED)
            )
    if gpus > 1:
        device = "a run uses the first for the engine; give the trainer the second"
        found.append(
            Check("placement", True, f"{device}: --set train.device=cuda:1"
                  + (f"; {gpus - 2} stay free" if gpus > 2 else ""))
        )  # fmt: skip
    return found


def _fits(name: str, needed: float, gpu_gib: float, what: str) -> Check:
    fits = needed <= gpu_gib
    remedy = (
        ""
        if fits
        else f"{needed:.1f} GiB are needed: a larger GPU, a second one (--gpus 2), or lower"
        " engine.max_context, concurrency or train.token_budget"
    )
    return Check(name, fits, f"about {needed:.1f} of {gpu_gib:.0f} GiB ({what})", remedy)
