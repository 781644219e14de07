"""An adapter as a GGUF file, for llama.cpp and what is built on it (`--lora FILE`).

The form is that of llama.cpp's `convert_lora_to_gguf.py`: metadata `general.type = adapter`,
`adapter.type = lora`, `adapter.lora.alpha`, and for each adapted weight two float32 tensors named
after the weight, `….lora_a` and `….lora_b`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness_adapters.adapters.source import WEIGHTS, Adapter
from harness_adapters.errors import ModelError

Array = npt.NDArray[np.float32]

_PART = re.compile(r"base_model\.model\.(?P<weight>.+)\.lora_(?P<part>[AB])\.weight")
_PLAIN = {"use_dora": False, "rank_pattern": {}, "alpha_pattern": {}, "bias": "none",
          "modules_to_save": None, "fan_in_fan_out": False}  # fmt: skip
"""What PEFT's settings must be, or be absent: GGUF has one alpha, one form and nothing else."""


@dataclass(frozen=True, slots=True)
class _Family:
    """How llama.cpp keeps the weights of an architecture."""

    name: str
    """Of `gguf.MODEL_ARCH`."""
    interleaved: bool
    """Whether its rotary embedding turns neighbours: rows of q and k are reordered for that."""


_FAMILIES = {
    "LlamaForCausalLM": _Family("LLAMA", True),
    "MistralForCausalLM": _Family("LLAMA", True),
    "Qwen2ForCausalLM": _Family("QWEN2", False),
    "Qwen3ForCausalLM": _Family("QWEN3", False),
    "Lfm2ForCausalLM": _Family("LFM2", False),
}
"""By the first of a checkpoint's `architectures`; each as llama.cpp's own converter treats it."""


def write_gguf(adapter: Adapter, base: Path, out: Path) -> Path:
    """Write the adapter of `base` to the file `out`, or to `NAME.gguf` in the directory `out`.

    Raises ModelError where the architecture or a setting of the adapter has no place in the form,
    or the file is there already.
    """
    file = out / f"{adapter.label}.gguf" if out.is_dir() else out
    if file.exists():
        raise ModelError(f"{file} is there already: name another file with --out")
    config = _config(base)
    family = _family(config, base)
    alpha = _alpha(adapter)
    pairs = _pairs(adapter)

    import gguf

    arch = gguf.MODEL_ARCH[family.name]
    names = gguf.get_tensor_name_map(arch, int(config["num_hidden_layers"]))
    named: dict[str, tuple[Array, Array]] = {}
    for weight, (a, b) in pairs.items():
        name = names.get_name(f"{weight}.weight", try_suffixes=(".weight",))
        if name is None or (weight == "lm_head" and config.get("tie_word_embeddings")):
            raise ModelError(
                f"{adapter.path}: GGUF has no place for {weight} of {family.name.lower()} "
                f"({config['num_hidden_layers']} layers)"
            )
        named[name] = a, _rows(weight, b, config) if family.interleaved else b
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f".{file.name}.partial")
    writer = gguf.GGUFWriter(partial, gguf.MODEL_ARCH_NAMES[arch])
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, alpha)
    writer.add_name(adapter.label)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for name, (a, b) in named.items():
        writer.add_tensor(f"{name}.lora_a", np.ascontiguousarray(a))
        writer.add_tensor(f"{name}.lora_b", np.ascontiguousarray(b))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    partial.replace(file)
    return file


def interleave(rows: Array, heads: int) -> Array:
    """Rows (heads * size, …) of q or k, reordered within each head: i and i + size/2 side by side.

    Checkpoints of transformers rotate the halves of a head against each other, llama.cpp's `llama`
    neighbours. The same as `LlamaModel.permute` of llama.cpp's converter.
    """
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return halves.swapaxes(1, 2).reshape(rows.shape)


def _config(base: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((base / "config.json").read_text(encoding="utf-8"))
        int(config["num_hidden_layers"]), int(config["num_attention_heads"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{base / 'config.json'}: not a model's configuration: {error}") from None
    return config


def _family(config: dict[str, Any], base: Path) -> _Family:
    architecture = str((config.get("architectures") or ["none"])[0])
    if architecture not in _FAMILIES:
        raise ModelError(
            f"{base}: {architecture} can't be exported as GGUF; that works for "
            f"{', '.join(_FAMILIES)} (export without --gguf writes a merged model)"
        )
    return _FAMILIES[architecture]


def _alpha(adapter: Adapter) -> float:
    """What gives the adapter's scale when it is divided by the rank."""
    peft = adapter.peft
    for key, plain in _PLAIN.items():
        if peft.get(key, plain) not in (plain, None, False):
            raise ModelError(
                f"{adapter.path}: {key} = {peft[key]!r} has no place in a GGUF adapter "
                "(export without --gguf writes a merged model)"
            )
    alpha, rank = float(peft["lora_alpha"]), adapter.rank
    return alpha * float(rank**0.5) if peft.get("use_rslora") else alpha


def _pairs(adapter: Adapter) -> dict[str, tuple[Array, Array]]:
    """Weight -> A (rank, in) and B (out, rank), float32, by name."""
    from safetensors.torch import load_file

    parts: dict[str, dict[str, Array]] = {}
    for name, tensor in sorted(load_file(adapter.path / WEIGHTS).items()):
        found = _PART.fullmatch(name)
        if found is None:
            raise ModelError(f"{adapter.path}: {name} has no place in a GGUF adapter")
        parts.setdefault(found["weight"], {})[found["part"]] = tensor.float().numpy()
    for weight, own in parts.items():
        if set(own) != {"A", "B"} or own["A"].shape[0] != own["B"].shape[1]:
            raise ModelError(f"{adapter.path}: the two parts of {weight} don't belong together")
    return {weight: (own["A"], own["B"]) for weight, own in parts.items()}


def _rows(weight: str, b: Array, config: dict[str, Any]) -> Array:
    heads = int(config["num_attention_heads"])
    if weight.endswith(".q_proj"):
        return interleave(b, heads)
    if weight.endswith(".k_proj"):
        return interleave(b, int(config.get("num_key_value_heads") or heads))
    return b
