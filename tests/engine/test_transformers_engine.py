import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness_adapters.engine import Sampling
from harness_adapters.engine.canary import canary, reference_logprobs
from harness_adapters.engine.models import load_chat_format
from harness_adapters.engine.transformers_engine import TransformersEngine
from harness_adapters.errors import EngineError

from . import checks
from .conftest import END_IDS


async def start(tiny: Path, end_ids: list[int] = END_IDS) -> TransformersEngine:
    return await TransformersEngine.start(tiny, dtype="float32", max_context=1024, end_ids=end_ids)


@pytest.fixture
async def engine(tiny: Path, adapters: dict[str, Path]) -> AsyncIterator[TransformersEngine]:
    engine = await start(tiny)
    for name, directory in adapters.items():
        await engine.load_adapter(name, directory)
    yield engine
    await engine.close()


async def test_mixed_batch(
    engine: TransformersEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    await checks.mixed_batch_is_right(engine, tiny, adapters, ["pi-v1", "hermes-v1"])


async def test_rows_of_one_adapter_join_and_leave(
    engine: TransformersEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    lengths = [(5, 30), (90, 3), (33, 12), (60, 25), (17, 1)]

    async def ask(index: int, length: int, tokens: int) -> None:
        await asyncio.sleep(0.02 * index)
        ids = checks.prompt(index, length)
        answer = await engine.generate(ids, adapter="pi-v1", sampling=Sampling(1.0, tokens))
        assert checks.worst_difference(tiny, adapters["pi-v1"], ids, answer) < 1e-3

    await asyncio.gather(*(ask(i, *pair) for i, pair in enumerate(lengths)))


async def test_new_version_under_new_name(engine: TransformersEngine) -> None:
    await checks.version_changes_output(engine, "pi-v1", "pi-v2")


async def test_prefix_cache(engine: TransformersEngine, tiny: Path) -> None:
    await checks.prefix_is_cached_and_right(engine, tiny)


async def test_prefix_cache_is_per_adapter(
    engine: TransformersEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    ids = checks.prompt(5, 150)
    await engine.generate(ids, adapter="pi-v1", sampling=checks.GREEDY)
    answer = await engine.generate(ids, adapter="hermes-v1", sampling=checks.SAMPLED)
    assert answer.cached_tokens == 0
    assert checks.worst_difference(tiny, adapters["hermes-v1"], ids, answer) < 1e-3


async def test_end_token(engine: TransformersEngine, tiny: Path) -> None:
    ids, end = await checks.greedy_end(engine)
    other = await start(tiny, [end])
    try:
        await checks.end_token_is_included(other, ids, end)
    finally:
        await other.close()


async def test_errors(
    engine: TransformersEngine, adapters: dict[str, Path], tmp_path: Path
) -> None:
    chosen = (adapters["pi-v1"], adapters["pi-v2"])
    await checks.errors_are_clear(engine, tmp_path, "pi-v1", *chosen)


async def test_an_adapter_leaves_after_its_last_request(
    engine: TransformersEngine, adapters: dict[str, Path]
) -> None:
    await checks.an_adapter_leaves_after_its_last_request(engine, "busy-v1", adapters["pi-v1"])


async def test_unload(engine: TransformersEngine, adapters: dict[str, Path]) -> None:
    await checks.unloaded_is_unknown(engine, "gone-v1", adapters["pi-v1"])


async def test_seed_repeats_and_temperature_scales(engine: TransformersEngine) -> None:
    ids = checks.prompt(1)
    seeded = Sampling(1.0, 16, seed=5)
    first = await engine.generate(ids, sampling=seeded)
    assert first.output_ids == (await engine.generate(ids, sampling=seeded)).output_ids
    assert (
        first.output_ids != (await engine.generate(ids, sampling=Sampling(1.0, 16, 6))).output_ids
    )


async def test_cancelled_request_frees_the_batch(engine: TransformersEngine) -> None:
    long = asyncio.create_task(engine.generate(checks.prompt(1), sampling=Sampling(1.0, 900)))
    await asyncio.sleep(0.1)
    long.cancel()
    await asyncio.wait_for(
        engine.generate(checks.prompt(2), adapter="pi-v1", sampling=checks.GREEDY), 5.0
    )


async def test_closed_engine_says_so(tiny: Path) -> None:
    engine = await start(tiny)
    waiting = asyncio.create_task(engine.generate(checks.prompt(1), sampling=Sampling(1.0, 900)))
    await asyncio.sleep(0.1)
    await engine.close()
    with pytest.raises(EngineError, match="closed"):
        await waiting
    with pytest.raises(EngineError, match="closed"):
        await engine.generate(checks.prompt(1), sampling=checks.GREEDY)


async def test_canary_passes_and_refuses(
    engine: TransformersEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    chat = load_chat_format(tiny)
    reference = reference_logprobs(tiny, "float32")
    chosen = {name: adapters[name] for name in ("pi-v1", "hermes-v1")}
    report = await canary(engine, chat, reference, chosen, dtype="float32")
    assert len(report.rows) == 6
    assert report.max_difference < 1e-3
    assert report.mean_ratio == pytest.approx(1.0, abs=1e-3)
    assert "canary" in report.line()
    # A trainer that holds another version than the engine serves is found out, and named.
    swapped = {"pi-v1": adapters["pi-v2"]}
    with pytest.raises(EngineError, match="disagree on pi-v1"):
        await canary(engine, chat, reference, swapped, dtype="float32")


async def test_canary_at_the_temperature_of_training(
    engine: TransformersEngine, tiny: Path, adapters: dict[str, Path]
) -> None:
    chat = load_chat_format(tiny)
    reference = reference_logprobs(tiny, "float32", temperature=0.5)
    chosen = {"pi-v1": adapters["pi-v1"]}
    report = await canary(engine, chat, reference, chosen, dtype="float32", temperature=0.5)
    assert report.max_difference < 1e-3
    with pytest.raises(EngineError, match="disagree"):
        await canary(engine, chat, reference, chosen, dtype="float32")


async def test_the_base_is_itself_after_each_unload(tiny: Path, adapters: dict[str, Path]) -> None:
    engine = await TransformersEngine.start(
        tiny, dtype="float32", max_context=512, end_ids=END_IDS, threads=1
    )
    prompt, sampling = [5, 6, 7, 8], Sampling(temperature=1.0, max_tokens=6, seed=3)
    before = await engine.generate(prompt, sampling=sampling)
    for name in ("pi-v1", "hermes-v1"):
        await engine.load_adapter(name, adapters[name])
    for name in ("pi-v1", "hermes-v1"):
        await engine.unload_adapter(name)
        after = await engine.generate(prompt, sampling=sampling)
        assert after.output_ids == before.output_ids
        assert after.logprobs == pytest.approx(before.logprobs, abs=1e-5)
    await engine.load_adapter("pi-v1", adapters["pi-v1"])
    assert (await engine.generate(prompt, adapter="pi-v1", sampling=sampling)).output_ids
    await engine.close()
