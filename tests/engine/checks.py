"""What any Engine must do, run against each one by its own test module."""

from __future__ import annotations

import asyncio
import functools
import random
from pathlib import Path

import pytest

from harness_adapters.engine import BASE, Completion, Engine, Sampling
from harness_adapters.engine.canary import reference_logprobs
from harness_adapters.errors import ContextError, EngineError

GREEDY = Sampling(temperature=0.0, max_tokens=12)
SAMPLED = Sampling(temperature=1.0, max_tokens=20)


reference = functools.cache(reference_logprobs)


def prompt(seed: int, length: int = 40) -> list[int]:
    return random.Random(seed).choices(range(100, 20_000), k=length)


def worst_difference(
    tiny: Path, adapter: Path | None, asked: list[int], answer: Completion
) -> float:
    """Largest |engine - transformers| over the answer's tokens, in nats."""
    expected = reference(tiny, "float32")(
        [(asked, answer.output_ids)], str(adapter) if adapter else None
    )[0]
    assert len(expected) == len(answer.logprobs) > 0
    return max(abs(a - b) for a, b in zip(expected, answer.logprobs, strict=True))


async def mixed_batch_is_right(
    engine: Engine, tiny: Path, adapters: dict[str, Path], names: list[str]
) -> None:
    """Two adapters and the base at once, of unequal lengths: everyone gets its own weights."""
    asked = [(name, prompt(i, 20 + 7 * i)) for i, name in enumerate([BASE, *names, BASE])]
    answers = await asyncio.gather(
        *(engine.generate(ids, adapter=name, sampling=SAMPLED) for name, ids in asked)
    )
    for (name, ids), answer in zip(asked, answers, strict=True):
        assert worst_difference(tiny, adapters.get(name), ids, answer) < 1e-3, name
    # The check can fail: another adapter's weights don't explain the same tokens.
    other = worst_difference(tiny, adapters[names[1]], asked[1][1], answers[1])
    assert other > 0.1


async def version_changes_output(engine: Engine, old: str, new: str) -> None:
    ids = prompt(7)
    before = await engine.generate(ids, adapter=old, sampling=GREEDY)
    after = await engine.generate(ids, adapter=new, sampling=GREEDY)
    again = await engine.generate(ids, adapter=old, sampling=GREEDY)
    assert before.output_ids == again.output_ids
    assert before.output_ids != after.output_ids


async def prefix_is_cached_and_right(engine: Engine, tiny: Path) -> None:
    """A session's next prompt extends its last one: most of it is cached, the result is equal."""
    first = prompt(3, 200)
    answer = await engine.generate(first, sampling=SAMPLED)
    second = first + answer.output_ids + prompt(4, 30)
    assert (await engine.generate(first, sampling=GREEDY)).cached_tokens >= 128
    answer = await engine.generate(second, sampling=SAMPLED)
    assert answer.cached_tokens >= 128
    assert worst_difference(tiny, None, second, answer) < 1e-3


async def greedy_end(engine: Engine) -> tuple[list[int], int]:
    """A prompt and the third token of its greedy continuation, to be made an end token."""
    ids = prompt(11)
    answer = await engine.generate(ids, sampling=Sampling(0.0, 3))
    assert answer.finish == "length"
    assert len(answer.output_ids) == 3
    return ids, answer.output_ids[2]


async def end_token_is_included(engine: Engine, ids: list[int], end: int) -> None:
    answer = await engine.generate(ids, sampling=Sampling(0.0, 50))
    assert answer.finish == "stop"
    assert answer.output_ids[-1] == end
    assert end not in answer.output_ids[:-1]
    assert len(answer.logprobs) == len(answer.output_ids)


async def errors_are_clear(
    engine: Engine, tmp_path: Path, taken: str, directory: Path, other: Path
) -> None:
    """`taken` is loaded from `directory`; `other` is another adapter."""
    with pytest.raises(ContextError, match="leaves no room"):
        await engine.generate(prompt(0, engine.max_context), sampling=GREEDY)
    full = await engine.generate(prompt(0, engine.max_context - 2), sampling=GREEDY)
    assert len(full.output_ids) <= 2
    with pytest.raises(EngineError, match="'nobody-v1' is not loaded"):
        await engine.generate(prompt(0), adapter="nobody-v1", sampling=GREEDY)
    with pytest.raises(EngineError, match="taken"):
        await engine.load_adapter(taken, other)
    with pytest.raises(EngineError, match="taken"):
        await engine.load_adapter(BASE, directory)
    with pytest.raises(EngineError, match=r"no adapter_config\.json"):
        await engine.load_adapter("missing-v1", tmp_path / "missing")
    with pytest.raises(EngineError, match="not loaded"):
        await engine.unload_adapter("nobody-v1")
    # Once more from the same place is no error: it is loaded, as was asked.
    await asyncio.gather(*(engine.load_adapter(taken, directory) for _ in range(2)))
    # The engine has survived all of it.
    await engine.generate(prompt(0), sampling=GREEDY)


async def unloaded_is_unknown(engine: Engine, name: str, directory: Path) -> None:
    await engine.load_adapter(name, directory)
    await engine.generate(prompt(0), adapter=name, sampling=GREEDY)
    await engine.unload_adapter(name)
    with pytest.raises(EngineError, match="not loaded"):
        await engine.generate(prompt(0), adapter=name, sampling=GREEDY)


async def an_adapter_leaves_after_its_last_request(
    engine: Engine, name: str, directory: Path
) -> None:
    await engine.load_adapter(name, directory)
    long = asyncio.create_task(
        engine.generate(prompt(0), adapter=name, sampling=Sampling(1.0, 100))
    )
    await asyncio.sleep(0)
    leaving = asyncio.create_task(engine.unload_adapter(name))
    await asyncio.sleep(0)
    with pytest.raises(EngineError, match="not loaded"):
        await engine.generate(prompt(0), adapter=name, sampling=GREEDY)
    await leaving
    assert long.done()
    assert (await long).output_ids
    await engine.load_adapter(name, directory)
    await engine.generate(prompt(0), adapter=name, sampling=GREEDY)
    await engine.unload_adapter(name)
