"""The losses that TRL has too, on the same rows: same log-probabilities, values and gradients.

Ours come from the shared forward, theirs from `GRPOTrainer`'s own loss on padded rows.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import trl
from trl import import_utils as trl_imports

from harness_adapters.config import TrainSettings
from harness_adapters.learner.batch import Batch, make_batch
from harness_adapters.learner.forward import Terms, TokenTable, rollout_log_ratios, row_logprobs
from harness_adapters.learner.losses import LossSettings, policy_loss
from harness_adapters.learner.rows import Row
from harness_adapters.learner.shared_forward import choose_forward
from harness_adapters.records import Rollout

from .builders import VOCABULARY, rollout, tiny_model, turn
from .test_shared_forward import LOGPROB_TOLERANCE, gradients, with_lora

# TRL loads any vLLM that it finds: half a minute for what no test here needs.
trl_imports.is_vllm_available = lambda *_, **__: False

CONSTANT = 20
CAP = 4.0

CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # ours, TRL's
    "grpo": ({"loss": "grpo"}, {"loss_type": "grpo"}),
    "dapo": (
        {"loss": "dapo", "normalisation": "token"},
        {"loss_type": "dapo", "epsilon_high": 0.28},
    ),
    "dr_grpo": (
        {"loss": "grpo", "advantage": "dr_grpo", "normalisation": "constant"},
        {"loss_type": "dr_grpo"},
    ),
    "cispo": (
        {"loss": "cispo", "normalisation": "token"},
        {"loss_type": "cispo", "epsilon_high": CAP},
    ),
    "gspo": (
        {"loss": "gspo", "epsilon_low": 0.1, "epsilon_high": 0.1},
        {
            "loss_type": "grpo",
            "importance_sampling_level": "sequence",
            "epsilon": 0.1,
            "epsilon_high": 0.1,
        },
    ),
    "brake": (
        {"loss": "grpo", "beta": 0.3},
        # TRL multiplies the brake by the ratio by default; ours is the plain estimate.
        {"loss_type": "grpo", "beta": 0.3, "use_bias_correction_kl": False},
    ),
}


def some_rollouts(model: Any) -> list[Rollout]:
    """Two groups of three sessions of two turns, sampled by a policy that is a little different."""
    generator = torch.Generator().manual_seed(4)

    def draw(count: int) -> list[int]:
        return torch.randint(3, VOCABULARY, (count,), generator=generator).tolist()

    made = []
    for group in range(2):
        task = [5, 6, 7, 8, 9 + group]
        for attempt in range(3):
            first, second = draw(3 + attempt), draw(4)
            prompts = [task, task + first + draw(2)]
            turns = [
                turn(prompt, output, index=i, logprobs=_noisy(model, prompt, output, generator))
                for i, (prompt, output) in enumerate(zip(prompts, (first, second), strict=True))
            ]
            reward = float(attempt == 0) + 0.1 * attempt
            made.append(
                rollout(f"{group}-{attempt}", turns, reward=reward, correct=attempt == 0,
                        group=str(group))
            )  # fmt: skip
    return made


def _noisy(
    model: Any, prompt: list[int], output: list[int], generator: torch.Generator
) -> list[float]:
    with torch.no_grad():
        logits = model(torch.tensor([prompt + output])).logits[0, len(prompt) - 1 : -1]
    exact = logits.log_softmax(-1).gather(1, torch.tensor(output)[:, None])[:, 0]
    noise = 0.3 * torch.randn(len(output), generator=generator)
    return (exact + noise).tolist()


def our_loss(
    model: Any, rollouts: list[Rollout], chosen: dict[str, Any]
) -> tuple[float, list[list[float]], Batch]:
    """The loss, the log-probabilities of each row's sampled tokens, and what they were made of."""
    settings = TrainSettings(ratio_mask="none", constant_tokens=CONSTANT, ratio_cap=CAP, **chosen)
    batch = make_batch(rollouts, settings, version=0)
    losses = LossSettings(
        name=settings.loss, ratio_mask="none", ratio_cap=CAP, beta=settings.beta,
        epsilon_low=settings.epsilon_low, epsilon_high=settings.epsilon_high,
    )  # fmt: skip
    forward, note = choose_forward(model)
    assert note == ""
    scores = row_logprobs(forward, batch.rows)
    ratios = rollout_log_ratios(batch.rows, scores)
    with model.disable_adapter():
        base = TokenTable(batch.rows, row_logprobs(forward, batch.rows), device=torch.device("cpu"))
    total = 0.0

    def loss(terms: Terms, logprobs: torch.Tensor, entropy: torch.Tensor) -> torch.Tensor:
        nonlocal total
        value = policy_loss(
            losses,
            logprobs_M=logprobs,
            old_logprobs_M=terms.old_logprobs_M,
            advantages_M=torch.tensor(batch.advantages)[terms.rollout_M],
            weights_M=torch.tensor(batch.weights)[terms.rollout_M],
            entropy_M=entropy,
            rollout_log_ratio_M=ratios[terms.rollout_M] if losses.needs_rollout_ratios else None,
            base_logprobs_M=base.of(terms) if losses.beta else None,
        )
        total += float(value.detach())
        return value

    forward.run(batch.rows, loss)
    return total, scores, batch


def their_loss(
    model: Any, batch: Batch, chosen: dict[str, Any], tmp_path: Path
) -> tuple[float, list[list[float]], dict[str, torch.Tensor]]:
    """The same of TRL, and the adapter's gradients."""
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, unk_token="w0"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, pad_token="w0", eos_token="w1")
    rows: list[Row] = batch.rows
    arguments = trl.GRPOConfig(
        output_dir=str(tmp_path), report_to=[], use_cpu=True, bf16=False, logging_steps=1,
        per_device_train_batch_size=len(rows), num_generations=len(rows),
        max_completion_length=CONSTANT, disable_dropout=False, gradient_checkpointing=False,
        **({"beta": 0.0} | chosen),
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=arguments,
        train_dataset=Dataset(
            # With a fingerprint of ours nothing is pickled to make one.
            InMemoryTable.from_pydict({"prompt": ["w5"] * len(rows)}),
            fingerprint="rows",
        ),
        processing_class=tokenizer,
    )
    trainer.current_gradient_accumulation_steps = 1
    heads = [row.first_trained for row in rows]
    before, after = max(heads), max(len(r.ids) - h for r, h in zip(rows, heads, strict=True))

    def padded(values: list[list[Any]], width: int, *, left: bool, dtype: Any) -> torch.Tensor:
        gaps = [[0] * (width - len(v)) for v in values]
        lists = [g + v if left else v + g for g, v in zip(gaps, values, strict=True)]
        return torch.tensor(lists, dtype=dtype)

    prompts = [row.ids[:head] for row, head in zip(rows, heads, strict=True)]
    tails = [(row, slice(head, None)) for row, head in zip(rows, heads, strict=True)]
    completions = [row.ids[tail] for row, tail in tails]
    inputs = {
        "prompt_ids": padded(prompts, before, left=True, dtype=torch.long),
        "prompt_mask": padded([[1] * len(p) for p in prompts], before, left=True, dtype=torch.long),
        "completion_ids": padded(completions, after, left=False, dtype=torch.long),
        "completion_mask": padded(
            [[1] * len(c) for c in completions], after, left=False, dtype=torch.long
        ),
        "tool_mask": padded(
            [[int(t) for t in row.trained[tail]] for row, tail in tails], after, left=False,
            dtype=torch.long,
        ),
        "old_per_token_logps": padded(
            [row.logprobs[tail] for row, tail in tails], after, left=False, dtype=torch.float32
        ),
        "advantages": torch.tensor([batch.advantages[row.rollout] for row in rows]),
        "num_items_in_batch": torch.tensor(sum(sum(row.trained) for row in rows)),
    }  # fmt: skip
    trained = trainer.model.train()
    ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"]], 1)
    mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"]], 1)

    def logprobs() -> torch.Tensor:
        with torch.no_grad():
            return trainer._get_per_token_logps_and_entropies(trained, ids, mask, after)[0]

    with trained.disable_adapter():
        inputs["ref_per_token_logps"] = logprobs()
    sampled = inputs["tool_mask"].bool()
    scores = [line[kept].tolist() for line, kept in zip(logprobs(), sampled, strict=True)]
    loss = trainer._compute_loss(trained, inputs)
    loss.backward()
    return float(loss.detach()), scores, gradients(trained)


@pytest.mark.parametrize(("name", "family"), [*((n, "llama") for n in CASES), ("cispo", "lfm2")])
def test_same_logprobs_loss_and_gradients(name: str, family: str, tmp_path: Path) -> None:
    ours, theirs = CASES[name]
    model = with_lora(tiny_model(family))
    other = copy.deepcopy(model)
    loss, scores, batch = our_loss(model, some_rollouts(other), ours)
    expected, expected_scores, expected_gradients = their_loss(other, batch, theirs, tmp_path)
    for found_row, expected_row in zip(scores, expected_scores, strict=True):
        assert found_row == pytest.approx(expected_row, abs=LOGPROB_TOLERANCE)
    assert loss == pytest.approx(expected, rel=1e-4, abs=1e-6)
    found = gradients(model)
    assert found.keys() == expected_gradients.keys()
    for key, gradient in expected_gradients.items():
        scale = gradient.abs().max().clamp(min=1e-6)
        assert (found[key] - gradient).abs().max() / scale <= 1e-4, key
