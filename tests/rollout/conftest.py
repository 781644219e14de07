from pathlib import Path

import pytest

from harness_adapters.config import Settings, load
from harness_adapters.engine.models import load_chat_format
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.harness.install import install
from harness_adapters.harness.registry import get_harness
from harness_adapters.rollout.session import SessionRunner
from harness_adapters.rollout.stack import make_runner


@pytest.fixture(scope="session")
def settings() -> Settings:
    return load(None, ["budget.max_turns=4", "engine.max_context=4096"])


@pytest.fixture
def engine(smollm2: Path) -> ScriptedEngine:
    return ScriptedEngine(load_chat_format(smollm2), max_context=4096)


@pytest.fixture
def runner(
    smollm2: Path,
    engine: ScriptedEngine,
    settings: Settings,
    tmp_path: Path,
) -> SessionRunner:
    install("pi")
    chat = load_chat_format(smollm2)
    return make_runner(engine, chat, get_harness("pi"), settings, tmp_path / "audit.jsonl")
