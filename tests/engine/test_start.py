from pathlib import Path

import pytest

from harness_adapters.config import EngineSettings
from harness_adapters.engine import start
from harness_adapters.engine.start import start_engine, vllm_device
from harness_adapters.errors import EngineError, ModelError


def test_installed_vllm_is_recognised() -> None:
    assert vllm_device() == "cpu"


async def test_fallback_says_so_and_why(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "vllm_device", lambda: None)
    said: list[str] = []
    settings = EngineSettings(kind="auto", max_context=100_000)
    engine = await start_engine(
        settings, tiny, log_dir=tmp_path, progress=said.append, dtype="float32"
    )
    await engine.close()
    assert engine.kind == "transformers"
    # The model's own limit, not the wish.
    assert engine.max_context == 4096
    assert said == [
        "engine: transformers in this process (no vLLM fits this machine); the slower fallback, "
        "float32"
    ]
    with pytest.raises(EngineError, match="no vLLM that fits this machine"):
        await start_engine(EngineSettings(kind="vllm"), tiny, log_dir=tmp_path)


async def test_url_that_does_not_answer(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"http://127\.0\.0\.1:9 can't be reached"):
        await start_engine(EngineSettings(url="http://127.0.0.1:9"), tiny, log_dir=tmp_path)


async def test_directory_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"config\.json"):
        await start_engine(EngineSettings(), tmp_path, log_dir=tmp_path)
