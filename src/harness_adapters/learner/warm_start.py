"""Supervised start: all weights fine-tuned on demonstrations of a scripted oracle.

Same rows, same trie and same shared trunk as reinforcement learning; the loss is the mean negative
log-probability of the demonstrated tokens of a batch. The result is a whole Hugging Face directory
that an engine serves as its base.
"""

from __future__ import annotations

import math
import random
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import LearnerError
from harness_adapters.learner.forward import Terms
from harness_adapters.learner.masters import MasterWeights
from harness_adapters.learner.model import load_base
from harness_adapters.learner.rows import Row, turns_to_rows
from harness_adapters.learner.shared_forward import choose_forward
from harness_adapters.records import Rollout

WARMUP_STEPS = 3
FINAL_FRACTION = 0.1
"""The learning rate stays for half of the steps, then falls linearly to this part of it."""
BETAS = (0.9, 0.95)
MAX_GRAD_NORM = 1.0
SIDE_FILES = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json",
    "generation_config.json", "LICENSE", "LICENSE.txt", "NOTICE",
)  # fmt: skip

Progress: TypeAlias = Callable[[int, int, float], None]
"""(step, steps, loss), after each step; steps count from 1."""


@dataclass(frozen=True, slots=True)
class WarmStartResult:
    """What a warm start did. `losses` by step, in nats per token."""

    directory: Path
    losses: list[float]
    snapshots: dict[int, Path]
    demonstrations: int
    note: str
    """Why prefix sharing was off, else empty."""


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Rate of step 0, 1, …: linear warm-up, plateau, linear decay over the second half."""
    half = steps / 2
    decay = max(0.0, step - half) / half if half else 0.0
    return peak * min(1.0, (step + 1) / WARMUP_STEPS) * (1 - decay * (1 - FINAL_FRACTION))


def warm_start(
    model_dir: Path,
    demonstrations: Sequence[Rollout],
    settings: WarmStartSettings,
    out: Path,
    *,
    dtype: str = "bfloat16",
    device: str = "auto",
    token_budget: int = 2048,
    trust_remote_code: bool = False,
    progress: Progress | None = None,
    save_at: Collection[int] = (),
) -> WarmStartResult:
    """Fine-tune and save to `out` (replaced whole); also to `out-s<step>` for each of `save_at`.

    Deterministic in `settings.seed` and the order of `demonstrations` for a fixed number of
    threads. Raises LearnerError without usable demonstrations or when the loss isn't finite.
    """
    sessions: dict[str, list[list[Row]]] = {}
    for rollout in demonstrations:
        if rows := turns_to_rows(rollout.turns):
            sessions.setdefault(rollout.harness, []).append(rows)
    if not sessions:
        raise LearnerError("warm start: no demonstration has any turn; record some first")
    torch.manual_seed(settings.seed)
    model = load_base(model_dir, dtype=dtype, device=device, trust_remote_code=trust_remote_code)
    side_files = [*SIDE_FILES]
    if trust_remote_code:
        side_files += [file.name for file in model_dir.glob("*.py")]
    forward, note = choose_forward(model, token_budget=token_budget)
    masters = MasterWeights((n, p) for n, p in model.named_parameters() if p.requires_grad)
    optimizer = torch.optim.AdamW(
        masters.parameters, lr=settings.learning_rate, betas=BETAS, weight_decay=0.0, fused=True
    )
    batches = _batches(sessions, settings)
    losses: list[float] = []
    snapshots: dict[int, Path] = {}
    for step in range(settings.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings.steps, settings.learning_rate)
        losses.append(_step(forward, masters, optimizer, next(batches)))
        if not math.isfinite(losses[-1]):
            raise LearnerError(
                f"warm start: loss is {losses[-1]} at step {step + 1}; lower its rate"
            )
        if progress:
            progress(step + 1, settings.steps, losses[-1])
        if step + 1 in save_at:
            snapshot = out.with_name(f"{out.name}-s{step + 1}")
            snapshots[step + 1] = _save(model, model_dir, snapshot, side_files)
    _save(model, model_dir, out, side_files)
    return WarmStartResult(out, losses, snapshots, sum(map(len, sessions.values())), note)


def _batches(
    sessions: Mapping[str, list[list[Row]]], settings: WarmStartSettings
) -> Iterator[list[Row]]:
    """Endless batches of rows, from each harness in turn: a batch's sessions share its prompt."""
    sources = [
        _batches_of_one(sessions[name], settings.batch, random.Random(settings.seed))
        for name in sorted(sessions)
    ]
    while True:
        for source in sources:
            yield next(source)


def _batches_of_one(
    sessions: list[list[Row]], wanted: int, shuffler: random.Random
) -> Iterator[list[Row]]:
    """Every session once per pass, in a seeded order."""
    size = min(wanted, len(sessions))
    order: list[list[Row]] = []
    while True:
        if len(order) < size:
            order = list(sessions)
            shuffler.shuffle(order)
        batch, order = order[:size], order[size:]
        yield [row for rows in batch for row in rows]


def _step(forward: Any, masters: MasterWeights, optimizer: Any, rows: list[Row]) -> float:
    count = sum(sum(row.trained) for row in rows)
    total = 0.0

    def loss(_: Terms, logprobs: torch.Tensor, __: torch.Tensor) -> torch.Tensor:
        nonlocal total
        value = -logprobs.sum() / count
        total += float(value.detach())
        return value

    masters.zero_grad()
    forward.run(rows, loss)
    torch.nn.utils.clip_grad_norm_(masters.parameters, MAX_GRAD_NORM)
    optimizer.step()
    masters.push()
    return total


def _save(model: Any, source: Path, out: Path, side_files: Sequence[str]) -> Path:
    """Weights, config and `side_files` of the source that are there; whole or not at all."""
    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.parent.mkdir(parents=True, exist_ok=True)
    model.config.use_cache = True
    try:
        model.save_pretrained(temporary)
    finally:
        model.config.use_cache = False
    for name in side_files:
        if (source / name).is_file():
            shutil.copy2(source / name, temporary / name)
    shutil.rmtree(out, ignore_errors=True)
    temporary.rename(out)
    return out
