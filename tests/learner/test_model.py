"""Loading the base and choosing what the adapter adapts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Lfm2Config, Lfm2ForCausalLM, Lfm2MoeConfig, Lfm2MoeForCausalLM

from harness_adapters import config
from harness_adapters.config import LoraSettings, ModelSettings, Settings, WarmStartSettings
from harness_adapters.errors import LearnerError, ModelError
from harness_adapters.learner.client import LearnerClient, warm_start_in_process
from harness_adapters.learner.learner import Learner
from harness_adapters.learner.model import add_lora, load_base
from harness_adapters.records import Phase
from harness_adapters.store import Store
from own_code import save_own_code_model

from .builders import rollout, tiny_model, turn


def adapted(model: Any, targets: str | list[str]) -> set[str]:
    """Last names of the modules that get an adapter."""
    wrapped = add_lora(model, LoraSettings(rank=2, targets=targets), seed=0)
    names = [name for name, _ in wrapped.named_parameters() if "lora_A" in name]
    return {name.split(".lora_A")[0].rsplit(".", 1)[1] for name in names}


def lfm(kind: type, network: type, **extra: Any) -> Any:
    shape = {
        "vocab_size": 101,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "layer_types": ["conv", "full_attention", "conv", "full_attention"],
        "pad_token_id": 2,
    }
    torch.manual_seed(0)
    return network(kind(**shape, **extra))


def test_auto_takes_the_familys_targets() -> None:
    attention = {"q_proj", "k_proj", "v_proj", "out_proj"}
    assert adapted(lfm(Lfm2Config, Lfm2ForCausalLM), "auto") == attention | {
        "in_proj", "w1", "w2", "w3",
    }  # fmt: skip
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    mixture = lfm(Lfm2MoeConfig, Lfm2MoeForCausalLM, num_dense_layers=1, **experts)
    # Neither the dense layer's MLP nor router and experts.
    assert adapted(mixture, "auto") == attention | {"in_proj"}
    assert adapted(tiny_model(), "auto") == adapted(tiny_model(), "all-linear")
    assert adapted(tiny_model(), ["q_proj"]) == {"q_proj"}


@pytest.mark.usefixtures("own_modules")
def test_a_checkpoints_own_code_runs_only_where_allowed(tmp_path: Path) -> None:
    marker = tmp_path / "its-code-ran"
    model_dir = save_own_code_model(tmp_path / "model", marker)
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        load_base(model_dir, dtype="float32")
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        Learner(tmp_path / "run", "pi", model_dir, Settings())
    assert not marker.exists()
    allowed = ModelSettings(dtype="float32", trust_remote_code=True)
    learner = Learner(tmp_path / "run", "pi", model_dir, Settings(model=allowed))
    assert marker.exists()
    assert len(learner.logprobs([([1, 2], [3])], None)[0]) == 1


@pytest.mark.usefixtures("own_modules")
@pytest.mark.heavy  # three processes that each load torch and transformers
def test_learner_processes_take_it_from_the_settings(tmp_path: Path) -> None:
    asyncio.run(_own_code_in_processes(tmp_path))


async def _own_code_in_processes(tmp_path: Path) -> None:
    marker, run = tmp_path / "its-code-ran", tmp_path / "run"
    model_dir = save_own_code_model(tmp_path / "model", marker)
    store = Store(run)
    store.add(rollout("d0", [turn([1, 2, 3], [4, 5])], phase=Phase.DEMONSTRATION))
    store.close()
    settings = WarmStartSettings(steps=1)

    async def warm(**options: Any) -> Path:
        result = await warm_start_in_process(
            run, model_dir, tmp_path / "warm", settings=settings, rollout_ids=["d0"], threads=1,
            dtype="float32", **options,
        )  # fmt: skip
        return Path(result["path"])

    with pytest.raises(LearnerError, match=r"model\.trust_remote_code"):
        await LearnerClient.start(run, "pi", model_dir)
    with pytest.raises(LearnerError, match=r"model\.trust_remote_code"):
        await warm()
    assert not marker.exists()
    base = await warm(trust_remote_code=True)
    assert marker.exists()
    # The warm-started copy is whole: it needs the same files, and the same permission.
    (run / "config.toml").write_text(
        config.dump(Settings(model=ModelSettings(dtype="float32", trust_remote_code=True)))
    )
    learner = await LearnerClient.start(run, "pi", base)
    assert (await learner.publish()).name == "pi-v0"
    await learner.close()
