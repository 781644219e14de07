"""One learner: the adapter of one harness, its optimizer, its versions.

A step is: rollouts -> advantages -> rows -> shared forward and backward -> AdamW -> publish ->
checkpoint. The adapter's directory is written before the checkpoint that names it, so a checkpoint
never names a missing one; a step that was killed in between is done again from the checkpoint
before, with the same result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from harness_adapters.config import Settings
from harness_adapters.engine.precision import settled
from harness_adapters.errors import LearnerError
from harness_adapters.learner import adapter, checkpoint
from harness_adapters.learner.batch import Batch, make_batch
from harness_adapters.learner.checkpoint import Checkpoint, StepResult
from harness_adapters.learner.forward import (
    Terms,
    TokenCounts,
    TokenTable,
    rollout_log_ratios,
    row_logprobs,
)
from harness_adapters.learner.losses import LossSettings, TokenStatistics, policy_loss
from harness_adapters.learner.masters import MasterWeights
from harness_adapters.learner.model import add_lora, load_base
from harness_adapters.learner.ranks import Ranks
from harness_adapters.learner.rows import Row, pair_to_row
from harness_adapters.learner.shared_forward import choose_forward
from harness_adapters.records import Rollout

BETAS = (0.9, 0.95)
"""A second moment of about 20 steps: runs are short."""


class Learner:
    """Trains and publishes `<run>/adapters/<harness>-v<N>`; continues from `<run>/checkpoints`."""

    def __init__(
        self,
        run: Path,
        harness: str,
        model_dir: Path,
        settings: Settings,
        ranks: Ranks | None = None,
    ) -> None:
        """`ranks`: the processes that share the work, when this one isn't alone."""
        settings = settled(settings)
        self._ranks = ranks or Ranks()
        self._settings = settings.train
        self._harness = harness
        self._adapters = run / "adapters"
        self._checkpoints = run / "checkpoints" / harness
        base = load_base(
            model_dir,
            dtype=settings.model.dtype,
            device=self._ranks.device(settings.train.device),
            trust_remote_code=settings.model.trust_remote_code,
        )
        self._model = add_lora(base, settings.lora, seed=settings.train.seed)
        trained = [(n, p) for n, p in self._model.named_parameters() if p.requires_grad]
        self._masters = MasterWeights(trained)
        self._optimizer = torch.optim.AdamW(
            self._masters.parameters,
            lr=self._settings.learning_rate,
            betas=BETAS,
            weight_decay=self._settings.weight_decay,
        )
        self._forward, self.note = choose_forward(
            self._model,
            token_budget=self._settings.token_budget,
            temperature=self._settings.temperature,
            checkpointing=self._settings.gradient_checkpointing,
        )
        self.step = -1
        """Last step trained; -1 before the first."""
        self.version = 0
        self._results: dict[int, StepResult] = {}
        if state := checkpoint.latest(self._checkpoints):
            self._resume(state)

    def adapter_path(self, name: str) -> Path:
        """Directory of a published adapter."""
        return self._adapters / name

    def _resume(self, state: Checkpoint) -> None:
        try:
            self._masters.load(state.lora)
            self._optimizer.load_state_dict(state.optimizer)
        except (KeyError, RuntimeError, ValueError) as error:
            raise LearnerError(
                f"checkpoint in {self._checkpoints} doesn't fit this model and lora settings:"
                f" {str(error).splitlines()[0]}"
            ) from None
        torch.set_rng_state(state.rng)
        self.step, self.version, self._results = state.step, state.version, state.results

    def publish(self) -> tuple[str, Path]:
        """Name and directory of the current version, written if it isn't there."""
        name = adapter.adapter_name(self._harness, self.version)
        path = self._adapters / name
        if self._ranks.first and not adapter.is_published(path):
            adapter.publish(self._model, self._adapters, name)
        return name, path

    def update(self, step: int, rollouts: Sequence[Rollout]) -> StepResult:
        """Train on one step's rollouts; the first step is 0 or 1, then they count up.

        A step that the checkpoint already holds answers as it did then. Without enough signal the
        weights, and so the version, stay.
        """
        if step <= self.step:
            return self._again(step)
        if self.step >= 0 and step > self.step + 1:
            raise LearnerError(
                f"step {step} was asked for, but the checkpoint holds step {self.step};"
                f" give step {self.step + 1} first"
            )
        started = time.monotonic()
        batch = make_batch(rollouts, self._settings, self.version)
        metrics = dict(batch.metrics)
        enough = bool(batch.rows) and batch.signal >= self._settings.min_signal
        if enough:
            metrics |= self._optimize(batch)
            self.version += 1
        metrics |= {
            "step": float(step),
            "version": float(self.version),
            "skipped": float(not enough),
        }
        metrics["seconds"] = time.monotonic() - started
        name, _ = self.publish() if not enough else self._publish_new()
        self.step = step
        self._results[step] = StepResult(metrics, name, self.version)
        if self._ranks.first:
            self.save()
        return self._results[step]

    def _again(self, step: int) -> StepResult:
        if step not in self._results:
            raise LearnerError(f"step {step} was never trained, but step {self.step} was")
        result = self._results[step]
        if result.version == self.version:
            self.publish()
        return result

    def _publish_new(self) -> tuple[str, Path]:
        name = adapter.adapter_name(self._harness, self.version)
        if self._ranks.first:
            adapter.publish(self._model, self._adapters, name)
        return name, self._adapters / name

    def _optimize(self, batch: Batch) -> dict[str, float]:
        """`num_iterations` optimizer steps on one batch; the metrics are those of the first.

        Later ones are off-policy by what the earlier ones changed: `kl/last_iteration` says by how
        much.
        """
        first = self._iterate(batch)
        last = first
        for _ in range(1, self._settings.num_iterations):
            last = self._iterate(batch)
        return first if last is first else first | {"kl/last_iteration": last["kl"]}

    def _iterate(self, batch: Batch) -> dict[str, float]:
        settings = LossSettings(
            name=self._settings.loss,
            ratio_min=self._settings.ratio_min,
            ratio_max=self._settings.ratio_max,
            ratio_cap=self._settings.ratio_cap,
            ratio_mask=self._settings.ratio_mask,
            epsilon_low=self._settings.epsilon_low,
            epsilon_high=self._settings.epsilon_high,
            beta=self._settings.beta,
        )
        rows = self._ranks.own(batch.rows)
        rollout_ratios = (
            rollout_log_ratios(rows, row_logprobs(self._forward, rows)).to(
                self._masters.parameters[0].device
            )
            if settings.needs_rollout_ratios
            else None
        )
        base = self._base_logprobs(rows) if settings.beta else None
        seen = TokenStatistics()
        parameters = self._masters.parameters
        device = parameters[0].device
        advantages = torch.tensor(batch.advantages, device=device)
        weights = torch.tensor(batch.weights, device=device)

        def loss(terms: Terms, logprobs: torch.Tensor, entropy: torch.Tensor) -> torch.Tensor:
            return policy_loss(
                settings,
                logprobs_M=logprobs,
                old_logprobs_M=terms.old_logprobs_M,
                advantages_M=advantages[terms.rollout_M],
                weights_M=weights[terms.rollout_M],
                entropy_M=entropy,
                rollout_log_ratio_M=(
                    None if rollout_ratios is None else rollout_ratios[terms.rollout_M]
                ),
                base_logprobs_M=None if base is None else base.of(terms),
                statistics=seen,
            )

        self._masters.zero_grad()
        counts = self._forward.run(rows, loss)
        self._ranks.sum_gradients(parameters)
        if self._ranks.count > 1:
            everyone = self._ranks.gather((seen, counts))
            seen = TokenStatistics.sum_of(part for part, _ in everyone)
            counts = TokenCounts.sum_of([part for _, part in everyone], batch.rows)
        rate = self._rate()
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self._settings.max_grad_norm))
        if not math.isfinite(norm):
            raise LearnerError(
                f"gradient norm is {norm} at version {self.version}; lower train.learning_rate or"
                " use model.dtype = float32"
            )
        self._optimizer.step()
        self._masters.push()
        self._masters.zero_grad()
        return seen.metrics() | _token_metrics(counts) | {"grad_norm": norm, "learning_rate": rate}

    def _base_logprobs(self, rows: Sequence[Row]) -> TokenTable:
        """What the model without its adapter gives the trained tokens: one forward, no gradient."""
        with self._model.disable_adapter():
            table = row_logprobs(self._forward, rows)
        return TokenTable(rows, table, device=self._masters.parameters[0].device)

    def _rate(self) -> float:
        warmup = min(1.0, (self.version + 1) / max(1, self._settings.warmup_steps))
        return self._settings.learning_rate * warmup

    def save(self) -> Path:
        """Write a checkpoint of the current state."""
        return checkpoint.save(
            self._checkpoints,
            Checkpoint(
                step=self.step,
                version=self.version,
                lora=self._masters.state(),
                optimizer=self._optimizer.state_dict(),
                rng=torch.get_rng_state(),
                results=self._results,
            ),
        )

    def logprobs(
        self, pairs: Sequence[tuple[list[int], list[int]]], adapter_dir: Path | None
    ) -> list[list[float]]:
        """Log-probabilities of each pair's output given its prompt, for comparing with an engine.

        With the adapter in `adapter_dir`, or without any (None: the base).
        """
        rows = [pair_to_row(prompt, output, i) for i, (prompt, output) in enumerate(pairs)]
        if adapter_dir is None:
            with self._model.disable_adapter():
                return row_logprobs(self._forward, rows)
        own = self._masters.state()
        try:
            adapter.load_weights(self._model, adapter_dir)
            return row_logprobs(self._forward, rows)
        finally:
            self._masters.load(own)


def _token_metrics(counts: TokenCounts) -> dict[str, Any]:
    return {
        "tokens/merged": float(counts.merged),
        "tokens/distinct": float(counts.distinct),
        "tokens/forwarded": float(counts.forwarded),
        "tokens/trained": float(counts.trained),
        "tokens/trunk": float(counts.trunk),
        "micro_batches": float(counts.micro_batches),
    }
