"""The GGUF file read back: names, metadata, and the weights that llama.cpp would compute with."""

import json
import shutil
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from typer.testing import CliRunner

from harness_adapters.adapters.lora_gguf import interleave, write_gguf
from harness_adapters.adapters.source import find_adapter
from harness_adapters.cli.main import app
from harness_adapters.errors import ModelError

from .conftest import save_adapter


def read(file: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Metadata and tensors of a GGUF file."""
    reader = gguf.GGUFReader(file)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    return fields, {tensor.name: np.array(tensor.data) for tensor in reader.tensors}


def deltas(model: Path, adapter: Path) -> dict[str, np.ndarray[Any, Any]]:
    """What PEFT adds to each weight, by the weight's name in the checkpoint."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    before = {name: weight.clone() for name, weight in plain.state_dict().items()}
    merged = PeftModel.from_pretrained(plain, str(adapter)).merge_and_unload()
    after = merged.state_dict()
    changed = {name: (after[name] - before[name]).numpy() for name in before}
    return {name: delta for name, delta in changed.items() if np.abs(delta).max() > 0}


def test_a_llama_adapter_reads_back_as_peft_applies_it(
    tiny: Path, stray: Path, tmp_path: Path
) -> None:
    file = write_gguf(find_adapter(stray), tiny, tmp_path / "out.gguf")
    fields, tensors = read(file)
    assert fields["general.architecture"] == "llama"
    assert fields["general.type"] == "adapter"
    assert fields["adapter.type"] == "lora"
    assert fields["adapter.lora.alpha"] == 4.0
    wanted = deltas(tiny, stray)
    assert len(tensors) == 2 * len(wanted) == 2 * 2 * 7
    short = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
             "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
             "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
             "mlp.down_proj": "ffn_down"}  # fmt: skip
    for name, delta in wanted.items():
        layer, part = name.split(".")[2], ".".join(name.split(".")[3:5])
        stem = f"blk.{layer}.{short[part]}.weight"
        a, b = tensors[f"{stem}.lora_a"], tensors[f"{stem}.lora_b"]
        assert a.dtype == b.dtype == np.float32
        found = fields["adapter.lora.alpha"] / b.shape[1] * (b @ a)  # llama.cpp's scale
        if part.endswith("q_proj"):
            delta = interleave(delta, 4)
        if part.endswith("k_proj"):
            delta = interleave(delta, 2)
        np.testing.assert_allclose(found, delta, atol=1e-6)


def test_reordered_rows_give_the_same_attention_under_llama_cpps_rotation() -> None:
    """Halves of a head rotated as transformers does, neighbours as llama.cpp's `llama` does."""
    rng = np.random.default_rng(0)
    heads, size, width = 3, 8, 16
    q, k = rng.normal(size=(2, heads * size, width)).astype(np.float32)
    x, y = rng.normal(size=(2, width)).astype(np.float32)
    angles = 10_000.0 ** (-np.arange(size // 2) / (size // 2))

    def halves(vector: np.ndarray[Any, Any], place: int) -> np.ndarray[Any, Any]:
        parts = vector.reshape(heads, size)
        low, high = parts[:, : size // 2], parts[:, size // 2 :]
        turn = place * angles
        return np.concatenate(
            [low * np.cos(turn) - high * np.sin(turn), high * np.cos(turn) + low * np.sin(turn)], 1
        )

    def neighbours(vector: np.ndarray[Any, Any], place: int) -> np.ndarray[Any, Any]:
        parts = vector.reshape(heads, size // 2, 2)
        even, odd = parts[..., 0], parts[..., 1]
        turn = place * angles
        turned = [
            even * np.cos(turn) - odd * np.sin(turn),
            odd * np.cos(turn) + even * np.sin(turn),
        ]
        return np.stack(turned, -1).reshape(heads, size)

    wanted = (halves(q @ x, 5) * halves(k @ y, 2)).sum(1)
    own = neighbours(interleave(q, heads) @ x, 5) * neighbours(interleave(k, heads) @ y, 2)
    np.testing.assert_allclose(own.sum(1), wanted, rtol=1e-4)
    plain = (neighbours(q @ x, 5) * neighbours(k @ y, 2)).sum(1)
    assert not np.allclose(plain, wanted, rtol=1e-2)


@pytest.mark.parametrize("family", ["qwen2", "qwen3", "lfm2"])
def test_other_families_keep_their_rows(family: str, tmp_path: Path) -> None:
    model = save_model(family, tmp_path / "model")
    adapter = save_adapter(model, tmp_path / "adapter", seed=1)
    fields, tensors = read(write_gguf(find_adapter(adapter), model, tmp_path / "out.gguf"))
    assert fields["general.architecture"] == family
    added = [
        fields["adapter.lora.alpha"] / b.shape[1] * (b @ tensors[name.replace("lora_b", "lora_a")])
        for name, b in tensors.items()
        if name.endswith("lora_b")
    ]
    wanted = list(deltas(model, adapter).values())
    assert len(added) == len(wanted)
    for delta in wanted:
        close = [d for d in added if d.shape == delta.shape and np.allclose(d, delta, atol=1e-6)]
        assert len(close) == 1
    if family == "lfm2":
        assert any("shortconv.in_proj" in name for name in tensors)


def save_model(family: str, directory: Path) -> Path:
    """A random model of two layers."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    own: dict[str, Any] = {"lfm2": {"layer_types": ["conv", "full_attention"]}}.get(family, {})
    config = AutoConfig.for_model(
        family, vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, **own,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config).save_pretrained(directory)
    return directory


def test_a_rank_stabilised_scale_is_kept(tiny: Path, stray: Path, tmp_path: Path) -> None:
    change(stray / "adapter_config.json", use_rslora=True)
    fields, _ = read(write_gguf(find_adapter(stray), tiny, tmp_path / "out.gguf"))
    assert fields["adapter.lora.alpha"] / 2 == pytest.approx(4 / 2**0.5)


def test_what_has_no_place_is_said_in_one_line(tiny: Path, stray: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gguf"
    other = tmp_path / "other"
    shutil.copytree(tiny, other)
    change(other / "config.json", architectures=["MambaForCausalLM"])
    with pytest.raises(ModelError, match=r"MambaForCausalLM can't be exported .* Qwen3ForCausalLM"):
        write_gguf(find_adapter(stray), other, out)
    change(other / "config.json", architectures=["LlamaForCausalLM"], num_hidden_layers=1)
    with pytest.raises(ModelError, match=r"no place for model\.layers\.1\.\S+ of llama \(1 layers"):
        write_gguf(find_adapter(stray), other, out)
    for setting in ({"use_dora": True}, {"alpha_pattern": {"q_proj": 8}}, {"bias": "all"}):
        copy = tmp_path / next(iter(setting))
        shutil.copytree(stray, copy)
        change(copy / "adapter_config.json", **setting)
        with pytest.raises(ModelError, match=f"{next(iter(setting))} = .* has no place"):
            write_gguf(find_adapter(copy), tiny, out)
    out.write_text("precious")
    with pytest.raises(ModelError, match="is there already"):
        write_gguf(find_adapter(stray), tiny, out)
    assert out.read_text() == "precious"
    assert not list(tmp_path.glob(".*.partial"))


def test_the_verb_writes_it_by_the_adapters_name(trained: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", str(trained), "--gguf", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "pi-v2.gguf").is_file()
    both = CliRunner().invoke(
        app, ["export", str(trained), "--gguf", "--merge", "--out", str(tmp_path)]
    )
    assert "one form at a time" in str(both.exception)


def change(file: Path, **values: object) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | values))
