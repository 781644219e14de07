"""Real models that several packages' tests share, and a place for their audit logs' heads."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import hypothesis
import pytest

from harness_adapters.engine.embedded import prepare

# Machines that build and test are busy: how long an example takes says nothing there.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With several workers a file stays on one, because its fixtures are dear (an engine, say).

    The conformance suite is cut by harness instead: its sessions are the longest part of all.
    """
    for item in items:
        group = item.path.name
        if item.get_closest_marker("conformance") and "[" in item.name:
            group = item.name.split("[")[1].split("-")[0].rstrip("]")
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session", autouse=True)
def audit_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Key and heads of the tests' audit logs, apart from the user's own."""
    home = tmp_path_factory.mktemp("audit-home")
    os.environ["HARNESS_ADAPTERS_AUDIT"] = str(home)
    return home


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded model where users have it; converted first where it is missing."""
    return prepare("smollm2")


@pytest.fixture(scope="session")
def tiny(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama with SmolLM2's tokenizer, float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
        # Wide enough that the model has preferences: a flat distribution would hide faults.
        initializer_range=0.2,
    )
    directory = tmp_path_factory.mktemp("tiny")
    LlamaForCausalLM(config).save_pretrained(directory)
    for file in smollm2.glob("tokenizer*"):
        shutil.copy(file, directory)
    shutil.copy(smollm2 / "chat_template.jinja", directory)
    return directory


@pytest.fixture
def own_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place of this test's own for the Python files of checkpoints, which transformers copies.

    They are imported as `transformers_modules.…`: that package remembers the folder in which an
    earlier test found it, so it is forgotten here.
    """
    import transformers.dynamic_module_utils as dynamic

    place = str(tmp_path / "modules")
    monkeypatch.setattr(dynamic, "HF_MODULES_CACHE", place)
    monkeypatch.setenv("HF_MODULES_CACHE", place)
    monkeypatch.syspath_prepend(place)
    for name in [name for name in sys.modules if name.split(".")[0] == "transformers_modules"]:
        monkeypatch.delitem(sys.modules, name)
