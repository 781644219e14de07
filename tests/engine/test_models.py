import json
from pathlib import Path

import pytest

from harness_adapters.engine.calls import CallFormat
from harness_adapters.engine.models import (
    PROFILES,
    Family,
    load_chat_format,
    load_profile,
    untrained_tokens,
)
from harness_adapters.errors import ModelError


def test_families_are_known_by_model_type(tmp_path: Path) -> None:
    found = {}
    for kind in ("llama", "qwen2", "lfm2", "lfm2_moe", "lfm3", "phi3"):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
        found[kind] = load_profile(tmp_path).family
    assert found.pop("phi3") is Family.GENERIC
    assert all(family == kind for kind, family in found.items())
    assert set(PROFILES) == set(Family)


def test_lfm_models_call_in_python() -> None:
    pythonic = {f for f, p in PROFILES.items() if p.call_format is CallFormat.PYTHONIC}
    assert pythonic == {Family.LFM2, Family.LFM2_MOE, Family.LFM3}


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_broken_config_is_a_model_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        load_profile(tmp_path)


def test_no_tokenizer_is_a_model_error(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(ModelError, match="tokenizer"):
        load_chat_format(tmp_path)


def test_the_tokens_of_our_calls_are_trained(smollm2: Path) -> None:
    chat = load_chat_format(smollm2)
    ids = chat.encode(chat.write_call("bash", '{"command": "ls -la"}'))
    assert untrained_tokens(smollm2, [*ids, *chat.end_ids]) == []
