"""The canary: does the engine sample from the distribution that the trainer differentiates?

Run before any training. The engine answers fixed prompts, for the base and for adapters, one at
a time and all in one mixed batch; the trainer then scores the same tokens. A large difference
means a wrong kernel, template or adapter, and would bias every importance ratio: the run is
refused.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness_adapters.engine import BASE, ChatFormat, Completion, Engine, Sampling
from harness_adapters.errors import EngineError

Pair: TypeAlias = tuple[list[int], list[int]]
"""Prompt ids and output ids."""

TrainerLogprobs: TypeAlias = Callable[[list[Pair], str | None], list[list[float]]]
"""Log-probabilities of the outputs of pairs, under an adapter's directory or the base (None), at
the temperature of training."""

MAX_MEAN = {"bfloat16": 0.06, "float32": 1e-3}
"""Largest mean |difference| that is accepted, in nats per token, by dtype.

Two right implementations differ by .007-.05 in bfloat16 (8 bits of mantissa through tens of
layers; the more, the less certain the model) and by 1e-5 in float32. Wrong ones seen so far
(another slot's adapter, rotary positions lost) differ by .1 and more.
"""

STANDARD_ERRORS = 2.0
"""A mean over some hundred tokens is refused when it exceeds the limit by this much noise."""

PROMPTS = (
    "Say hello in three languages.",
    "List the files in the current directory, then count the lines of the largest one.",
    "Write a Python function that parses 2024-01-31 into a date.",
    "Explain why `rm -rf build/*.o` may fail — «naïve» answers are fine.",
)
OUTPUT_TOKENS = 24


@dataclass(frozen=True, slots=True)
class CanaryRow:
    """Agreement on one adapter in one setting."""

    adapter: str
    setting: str
    """`alone` or `mixed`: one request at a time, or all adapters in one batch."""
    tokens: int
    mean_difference: float
    """Mean |engine - trainer| in nats per token."""
    max_difference: float
    mean_ratio: float
    """Mean of exp(trainer - engine): 1 when the difference is unbiased."""
    standard_error: float
    """Of `mean_difference`."""


@dataclass(frozen=True, slots=True)
class CanaryReport:
    """What the canary measured; it passed if it was returned."""

    rows: list[CanaryRow]
    limit: float

    @property
    def mean_difference(self) -> float:
        """Over all tokens."""
        return _weighted(self.rows, [row.mean_difference for row in self.rows])

    @property
    def max_difference(self) -> float:
        """Of the worst token."""
        return max(row.max_difference for row in self.rows)

    @property
    def mean_ratio(self) -> float:
        """Over all tokens."""
        return _weighted(self.rows, [row.mean_ratio for row in self.rows])

    def line(self) -> str:
        """One line for people."""
        return (
            f"canary: engine and trainer differ by {self.mean_difference:.2g} nats per token "
            f"(limit {self.limit:g}, worst {self.max_difference:.2g}, ratio {self.mean_ratio:.4f})"
        )


async def canary(
    engine: Engine,
    chat: ChatFormat,
    trainer_logprobs: TrainerLogprobs,
    adapters: Mapping[str, Path],
    *,
    dtype: str = "bfloat16",
    temperature: float = 1.0,
) -> CanaryReport:
    """Compare engine and trainer on the base and on `adapters` (loaded names and directories).

    Both must use `temperature`: the engine is asked for it, `trainer_logprobs` has it built in (the
    learner scores at `train.temperature`). Raises EngineError when the mean difference of any
    adapter in any setting is above `MAX_MEAN[dtype]` beyond noise, naming adapter and setting.
    """
    names = [BASE, *adapters]
    prompts = [chat.render([{"role": "user", "content": text}], []) for text in PROMPTS]
    asked = [(name, prompt) for name in names for prompt in prompts]

    async def ask(index: int, name: str, prompt: list[int]) -> Completion:
        sampling = Sampling(temperature, OUTPUT_TOKENS, seed=index)
        return await engine.generate(prompt, adapter=name, sampling=sampling)

    alone = [await ask(i, name, prompt) for i, (name, prompt) in enumerate(asked)]
    # Interleaved, so that no adapter's rows lie together.
    order = sorted(range(len(asked)), key=lambda i: (i % len(prompts), i))
    answers = await asyncio.gather(*(ask(len(asked) + i, *asked[i]) for i in order))
    mixed = dict(zip(order, answers, strict=True))
    rows: list[CanaryRow] = []
    for name in names:
        mine = [i for i, (other, _) in enumerate(asked) if other == name]
        path = str(adapters[name]) if name in adapters else None
        for setting, found in (
            ("alone", [alone[i] for i in mine]),
            ("mixed", [mixed[i] for i in mine]),
        ):
            pairs = [
                (asked[i][1], answer.output_ids) for i, answer in zip(mine, found, strict=True)
            ]
            scored = await asyncio.to_thread(trainer_logprobs, pairs, path)
            rows.append(_compare(name, setting, found, scored))
    report = CanaryReport(rows, MAX_MEAN[dtype])
    worst = max(rows, key=_least_difference)
    # Written so that nan is refused, too.
    if not _least_difference(worst) <= report.limit:
        raise EngineError(
            f"canary: engine and trainer disagree on {worst.adapter} ({worst.setting}) by "
            f"{worst.mean_difference:.2g} nats per token (limit {report.limit:g} in {dtype}); "
            "training on that would be biased. Update the engine, or use engine.kind=transformers"
        )
    return report


def _least_difference(row: CanaryRow) -> float:
    """The smallest true mean that the measured one is likely to stand for."""
    least = row.mean_difference - STANDARD_ERRORS * row.standard_error
    return math.inf if math.isnan(least) else least


def _compare(
    adapter: str, setting: str, answers: list[Completion], scored: list[list[float]]
) -> CanaryRow:
    gaps = [
        trainer - mine
        for answer, row in zip(answers, scored, strict=True)
        for mine, trainer in zip(answer.logprobs, row, strict=True)
    ]
    sizes = [abs(gap) for gap in gaps]
    mean = sum(sizes) / len(sizes)
    variance = sum((size - mean) ** 2 for size in sizes) / max(1, len(sizes) - 1)
    return CanaryRow(
        adapter=adapter,
        setting=setting,
        tokens=len(gaps),
        mean_difference=mean,
        max_difference=max(sizes),
        mean_ratio=sum(map(math.exp, gaps)) / len(gaps),
        standard_error=math.sqrt(variance / len(sizes)),
    )


def _weighted(rows: list[CanaryRow], values: list[float]) -> float:
    tokens = sum(row.tokens for row in rows)
    return sum(row.tokens * value for row, value in zip(rows, values, strict=True)) / tokens


def reference_logprobs(
    model_dir: Path,
    dtype: str,
    *,
    threads: int = 1,
    temperature: float = 1.0,
    trust_remote_code: bool = False,
) -> TrainerLogprobs:
    """A TrainerLogprobs made of plain transformers + PEFT, for tests and measurements."""
    import torch

    from harness_adapters.engine.local_model import LocalModel, token_logprobs

    torch.set_num_threads(threads)
    local = LocalModel.load(model_dir, dtype=dtype, trust_remote_code=trust_remote_code)

    def score(pairs: list[Pair], adapter_path: str | None) -> list[list[float]]:
        name = adapter_path or BASE
        if adapter_path is not None and name not in local.adapters:
            local.load_adapter(name, Path(adapter_path))
        with local.using(name) as model:
            return [token_logprobs(model, *pair, temperature) for pair in pairs]

    return score
