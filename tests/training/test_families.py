"""The whole line for each architecture: engine, real sessions of pi, update, publish, engine.

The models are tiny and random, so rewards are given by hand: a random model solves nothing.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from families import save_family
from harness_adapters.config import load
from harness_adapters.engine.canary import canary
from harness_adapters.engine.models import load_chat_format, load_profile
from harness_adapters.engine.start import start_engine
from harness_adapters.harness.install import install
from harness_adapters.harness.registry import get_harness
from harness_adapters.learner.learner import Learner
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import make_runner
from harness_adapters.tasks import load_task

from .conftest import write_coin

SETTINGS = [
    "model.dtype=float32",
    "model.trust_remote_code=true",  # the one like LFM3 brings code of its own
    "engine.kind=transformers",
    "engine.max_context=4096",
    "budget.max_turns=2",
    "budget.max_tokens_per_turn=16",
    'lora.targets="auto"',
    "lora.rank=4",
    "train.learning_rate=0.01",
    "train.temperature=1.0",  # what the sessions below are sampled at
]


@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("family", ["llama", "lfm2_moe", "lfm3"])
def test_from_a_session_to_the_next_version(family: str, smollm2: Path, tmp_path: Path) -> None:
    install("pi")
    model = save_family(family, tmp_path / "model", smollm2)
    assert load_profile(model).family == family
    write_coin(tmp_path / "coins", "coin", "train", 0)
    asyncio.run(_line(model, tmp_path / "coins/coin-train-0", tmp_path / "run"))


async def _line(model: Path, task: Path, run: Path) -> None:
    settings = load(None, SETTINGS)
    learner = Learner(run, "pi", model, settings)
    assert learner.note == "", "prefixes are shared"
    chat = load_chat_format(model, trust_remote_code=True)
    engine = await start_engine(
        settings.engine, model, log_dir=run, dtype="float32", trust_remote_code=True
    )
    try:
        first, folder = learner.publish()
        await engine.load_adapter(first, folder)
        runner = make_runner(engine, chat, get_harness("pi"), settings, run / "audit.jsonl")

        def plan(attempt: int) -> SessionPlan:
            return SessionPlan(
                task=load_task(task), phase=Phase.TRAIN, arm="pi", adapter=first, version=0,
                group="g", attempt=attempt, step=1, temperature=1.0, seed=attempt,
            )  # fmt: skip

        played: list[Rollout] = await asyncio.gather(*(runner.run(plan(n)) for n in range(2)))
        for rollout in played:
            assert rollout.reward is not None, rollout.error
            assert rollout.turns and all(turn.adapter == first for turn in rollout.turns)
        scored = [replace(r, reward=float(n), correct=bool(n)) for n, r in enumerate(played)]
        result = learner.update(1, scored)
        assert (result.adapter, result.metrics["skipped"]) == ("pi-v1", 0)
        # What the engine said it sampled is what the trainer finds, on pi's own prompt.
        assert result.metrics["sampling/sampling_logp_difference/max"] < 1e-3
        second = learner.adapter_path(result.adapter)
        await engine.load_adapter(result.adapter, second)

        def trained(pairs: list[tuple[list[int], list[int]]], at: str | None) -> list[list[float]]:
            return learner.logprobs(pairs, Path(at) if at else None)

        versions = {first: folder, result.adapter: second}
        report = await canary(engine, chat, trained, versions, dtype="float32")
        assert report.max_difference < 1e-3
        turn = played[0].turns[0]
        pair = [(turn.prompt_ids, turn.output_ids)]
        assert learner.logprobs(pair, folder) != learner.logprobs(pair, second)
    finally:
        await engine.close()
