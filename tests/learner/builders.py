"""Tiny models and hand-made rollouts for the learner's tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Lfm2Config,
    Lfm2ForCausalLM,
    Lfm2MoeConfig,
    Lfm2MoeForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)
from transformers.models.lfm2.modeling_lfm2 import Lfm2Attention

from harness_adapters.learner.rows import Row, turns_to_rows
from harness_adapters.records import Phase, Rollout, SessionEnd, Turn

VOCABULARY = 101
WINDOW = 6
FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    "mistral": (MistralConfig, MistralForCausalLM),
    "gemma3": (Gemma3TextConfig, Gemma3ForCausalLM),
    "lfm2": (Lfm2Config, Lfm2ForCausalLM),
    "lfm2_moe": (Lfm2MoeConfig, Lfm2MoeForCausalLM),
    "lfm3_like": (Lfm2Config, Lfm2ForCausalLM),
}
_CONV = {"block_auto_adjust_ff_dim": False, "pad_token_id": 2}
SHAPES: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": WINDOW},
    "gemma3": {
        "sliding_window": WINDOW,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "query_pre_attn_scalar": 12,
    },
    "lfm2": _CONV | {"layer_types": ["conv", "full_attention", "conv"]},
    "lfm2_moe": {
        "layer_types": ["conv", "full_attention", "conv"],
        "pad_token_id": 2,
        "num_dense_layers": 1,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
    },
    "lfm3_like": _CONV
    | {
        "num_hidden_layers": 5,
        "conv_L_cache": 7,
        "layer_types": ["conv", "full_attention", "conv", "full_attention", "conv"],
    },
}


class WindowedAttention(Lfm2Attention):
    """LFM2's attention with a sliding window, as LFM3's is."""

    def forward(self, hidden_states: Any, attention_mask: Any = None, **extra: Any) -> Any:
        if self.config._attn_implementation != "harness_adapters_tree":
            place = torch.arange(hidden_states.shape[1])
            back = place[:, None] - place[None]
            seen = (back >= 0) & (back < WINDOW)
            attention_mask = torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))[None, None]
        return super().forward(
            hidden_states, attention_mask=attention_mask, sliding_window=WINDOW, **extra
        )


def tiny_model(family: str = "llama", *, seed: int = 0, tied: bool = True, **extra: Any) -> Any:
    config_class, model_class = FAMILIES[family]
    torch.manual_seed(seed)
    shape = {
        "vocab_size": VOCABULARY,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "max_position_embeddings": 512,
        "tie_word_embeddings": tied,
        "initializer_range": 0.1,
    }
    model = model_class(config_class(**(shape | SHAPES.get(family, {}) | extra)))
    if family == "lfm3_like":
        model.model.layers[3].self_attn.__class__ = WindowedAttention
    return model.train()


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
