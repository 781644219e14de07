"""The plain way: every merged row forwarded on its own, through the model's own code.

For any architecture, and the reference that the shared forward is tested against.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness_adapters.learner.forward import Loss, Terms, TokenCounts
from harness_adapters.learner.head import logits_logprobs
from harness_adapters.learner.rows import Row
from harness_adapters.learner.trie import distinct_tokens


class PlainForward:
    """One row at a time; logits only at trained positions."""

    def __init__(self, model: Any, *, temperature: float = 1.0) -> None:
        self._model = model
        self._temperature = temperature

    def run(self, rows: Sequence[Row], loss: Loss, *, grad: bool = True) -> TokenCounts:
        """See `forward.Forward`."""
        device = next(self._model.parameters()).device
        merged = trained = 0
        for index, row in enumerate(rows):
            columns = torch.tensor([c for c, t in enumerate(row.trained) if t], device=device)
            ids = torch.tensor([row.ids], device=device)
            with torch.set_grad_enabled(grad):
                logits = self._model(
                    input_ids=ids, logits_to_keep=columns - 1, use_cache=False
                ).logits[0]
                logprobs, entropy = logits_logprobs(logits, ids[0, columns], self._temperature)
                terms = Terms(
                    rollout_M=torch.full_like(columns, row.rollout),
                    row_M=torch.full_like(columns, index),
                    column_M=columns,
                    old_logprobs_M=torch.tensor(row.logprobs, device=device)[columns],
                )
                value = loss(terms, logprobs, entropy)
            if grad:
                value.backward()
            merged += len(row.ids)
            trained += len(columns)
        return TokenCounts(
            merged=merged,
            distinct=distinct_tokens(rows),
            forwarded=merged,
            trained=trained,
            micro_batches=len(rows),
        )
