"""Python files that come with a checkpoint run only where the user has allowed it."""

import json
from pathlib import Path

import pytest

from harness_adapters.config import EngineSettings
from harness_adapters.engine import Sampling, start
from harness_adapters.engine.canary import reference_logprobs
from harness_adapters.engine.local_model import LocalModel
from harness_adapters.engine.models import has_own_code, load_chat_format
from harness_adapters.engine.start import start_engine
from harness_adapters.errors import ModelError
from own_code import save_own_code_model

pytestmark = pytest.mark.usefixtures("own_modules")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    return tmp_path / "its-code-ran"


@pytest.fixture
def model(tmp_path: Path, marker: Path) -> Path:
    return save_own_code_model(tmp_path / "model", marker)


async def test_it_does_not_run_unless_allowed(
    model: Path, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "vllm_device", lambda: None)
    assert has_own_code(model)
    with pytest.raises(ModelError, match=r"model\.trust_remote_code = true") as caught:
        LocalModel.load(model, dtype="float32")
    assert str(model) in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        reference_logprobs(model, "float32")
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        await start_engine(EngineSettings(), model, log_dir=tmp_path, dtype="float32")
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        load_chat_format(model)
    assert not marker.exists()


async def test_allowed_it_runs(
    model: Path, marker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "vllm_device", lambda: None)
    engine = await start_engine(
        EngineSettings(), model, log_dir=tmp_path, dtype="float32", trust_remote_code=True
    )
    try:
        answer = await engine.generate([5, 6, 7], sampling=Sampling(1.0, 5))
    finally:
        await engine.close()
    assert marker.exists() and type(engine._local.model).__name__ == "OwnForCausalLM"
    score = reference_logprobs(model, "float32", trust_remote_code=True)
    [expected] = score([([5, 6, 7], answer.output_ids)], None)
    assert answer.logprobs == pytest.approx(expected, abs=1e-4)


def test_a_tokenizer_of_its_own_needs_the_same(tmp_path: Path, marker: Path) -> None:
    model = save_own_code_model(tmp_path / "model", marker, model_type="llama")
    load_chat_format(model)
    config = model / "tokenizer_config.json"
    changed = json.loads(config.read_text()) | {
        "tokenizer_class": "OwnTokenizer",
        "auto_map": {"AutoTokenizer": [None, "tokenization_own.OwnTokenizer"]},
    }
    config.write_text(json.dumps(changed))
    (model / "tokenization_own.py").write_text(
        "from transformers import PreTrainedTokenizerFast\n"
        f"open({str(marker)!r}, 'a').close()\n\n\n"
        "class OwnTokenizer(PreTrainedTokenizerFast):\n    pass\n"
    )
    with pytest.raises(ModelError, match=r"model\.trust_remote_code"):
        load_chat_format(model)
    assert not marker.exists()
    assert load_chat_format(model, trust_remote_code=True).encode("w7 w8") == [7, 8]
    assert marker.exists()


def test_what_transformers_has_itself_is_taken_from_there(tmp_path: Path, marker: Path) -> None:
    """Allowed or not: the checkpoint's files are not needed."""
    model = save_own_code_model(tmp_path / "model", marker, model_type="llama")
    for allowed in (False, True):
        local = LocalModel.load(model, dtype="float32", trust_remote_code=allowed)
        assert type(local.model).__name__ == "LlamaForCausalLM"
    assert not marker.exists()


@pytest.mark.parametrize("auto_map", ["AutoConfig", ["AutoConfig"], {"AutoConfig": 3}])
def test_a_damaged_auto_map_is_one_line(model: Path, auto_map: object) -> None:
    file = model / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"auto_map": auto_map}))
    with pytest.raises(ModelError) as caught:
        load_chat_format(model)
    assert "\n" not in str(caught.value)


def test_code_that_fails_is_one_line(model: Path) -> None:
    (model / "configuration_own.py").write_text("import no_such_package_at_all\n")
    with pytest.raises(ModelError, match="its own Python files fail: ") as caught:
        LocalModel.load(model, dtype="float32", trust_remote_code=True)
    assert "no_such_package_at_all" in str(caught.value) and "\n" not in str(caught.value)
