"""Tiny models and hand-made rollouts for the learner's tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from harness_adapters.learner.rows import Row, turns_to_rows
from harness_adapters.records import Phase, Rollout, SessionEnd, Turn

VOCABULARY = 101
FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def tiny_model(family: str = "llama", *, seed: int = 0, tied: bool = True, **extra: Any) -> Any:
    config_class, model_class = FAMILIES[family]
    torch.manual_seed(seed)
    config = config_class(
        vocab_size=VOCABULARY,
        hidden_size=48,
        intermediate_size=64,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=12,
        max_position_embeddings=512,
        tie_word_embeddings=tied,
        initializer_range=0.1,
        **extra,
    )
    return model_class(config).train()


def save_tiny(directory: Path, family: str = "llama") -> Path:
    tiny_model(family).save_pretrained(directory)
    return directory


def turn(
    prompt: list[int],
    output: list[int],
    *,
    index: int = 0,
    logprobs: list[float] | None = None,
    version: int = 0,
    finish: str = "stop",
) -> Turn:
    return Turn(
        index=index,
        prompt_ids=prompt,
        output_ids=output,
        logprobs=logprobs if logprobs is not None else [-1.0] * len(output),
        adapter="base",
        version=version,
        finish=finish,
        text="",
        calls=[],
        new_messages=[],
        started=0.0,
        seconds=0.0,
    )


def rollout(
    name: str,
    turns: list[Turn],
    *,
    reward: float | None = 1.0,
    correct: bool | None = True,
    group: str = "g",
    version: int = 0,
    phase: Phase = Phase.TRAIN,
) -> Rollout:
    return Rollout(
        id=name,
        phase=phase,
        harness="pi",
        profile="lean",
        arm="pi",
        adapter="base",
        version=version,
        task="task",
        family="family",
        level=1,
        group=group,
        attempt=0,
        step=1,
        temperature=1.0,
        score=reward,
        reward=reward,
        correct=correct,
        calls=len(turns),
        end=SessionEnd.FINISHED,
        error="",
        turns=turns,
        verifier_output="",
        started=0.0,
        seconds=0.0,
    )


def session(
    rng: random.Random, prefix: list[int], *, turns: int = 3, fork: bool = False
) -> list[Turn]:
    """A session whose history is append-only, or whose last prompt rewrites an echoed answer."""

    def draw(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(count)]

    prompt = prefix + draw(rng.randrange(1, 6))
    result = []
    for index in range(turns):
        output = draw(rng.randrange(1, 5))
        result.append(
            turn(prompt, output, index=index, logprobs=[-rng.random() * 6 for _ in output])
        )
        echoed = draw(2) if fork and index == turns - 2 else output
        prompt = prompt + echoed + draw(rng.randrange(0, 4))
    return result


def forked_rows(trunk: int, *, seed: int = 0) -> list[Row]:
    """Rows of several sessions: forks, an exact duplicate, a row that another one extends."""
    rng = random.Random(seed)
    prefix = [rng.randrange(VOCABULARY) for _ in range(trunk)]
    # Sessions of one task share more than the trunk; two tasks differ in their first own token.
    tasks = [[*prefix, first, 7, 8] for first in (3, 4)]
    if trunk == 0:
        tasks = [[3, 7, 8], [4, 7, 8]]
    rows: list[Row] = []
    for number in range(5):
        turns = session(rng, tasks[number % 2], fork=number % 3 == 0)
        rows += turns_to_rows(turns, rollout=number)
    again = turns_to_rows(session(random.Random(99), tasks[0]), rollout=5)
    return rows + again + turns_to_rows(session(random.Random(99), tasks[0]), rollout=6)
