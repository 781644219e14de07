"""What both forward passes have in common: loss terms, token counts, the way to call them."""

# ruff: noqa: N815 - capital suffixes are array shapes

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import torch

from harness_adapters.learner.rows import Row
from harness_adapters.learner.trie import distinct_tokens

Tensor: TypeAlias = torch.Tensor


@dataclass(frozen=True, slots=True)
class Terms:
    """The M loss terms of one micro-batch, a term per trained token of a row."""

    rollout_M: Tensor
    row_M: Tensor
    """Index into the rows given to `run`."""
    column_M: Tensor
    """Index of the token in its row."""
    old_logprobs_M: Tensor


Loss: TypeAlias = Callable[[Terms, Tensor, Tensor], Tensor]
"""(terms, logprobs [M], entropy [M, no gradient]) -> scalar. Losses of micro-batches add up."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How much was computed."""

    merged: int = 0
    """Tokens of all rows."""
    distinct: int = 0
    """Nodes of the trie over all rows."""
    forwarded: int = 0
    """Tokens that went through the model: what sharing leaves, micro-batch borders included.

    What the backward pass computes again (checkpoints, a long trunk) isn't counted.
    """
    trained: int = 0
    """Loss terms."""
    trunk: int = 0
    micro_batches: int = 0

    @classmethod
    def sum_of(cls, parts: Sequence[TokenCounts], rows: Sequence[Row]) -> TokenCounts:
        """Of a step that several processes shared; `rows` are those of all.

        What more than one of them computed counts as forwarded more than once.
        """
        return cls(
            merged=sum(part.merged for part in parts),
            distinct=distinct_tokens(rows),
            forwarded=sum(part.forwarded for part in parts),
            trained=sum(part.trained for part in parts),
            trunk=min(part.trunk for part in parts if part.merged),
            micro_batches=sum(part.micro_batches for part in parts),
        )


class Forward(Protocol):
    """Log-probabilities of a batch's trained tokens and, through them, gradients."""

    def run(self, rows: Sequence[Row], loss: Loss, *, grad: bool = True) -> TokenCounts:
        """Call `loss` on each micro-batch; with `grad`, accumulate gradients of the sum."""
        ...


def base_model(model: Any) -> Any:
    """The transformers model inside a PEFT wrapper, else the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def row_logprobs(forward: Forward, rows: Sequence[Row]) -> list[list[float]]:
    """Log-probabilities of each row's trained tokens, in order; no gradient."""
    found: list[dict[int, float]] = [{} for _ in rows]

    def collect(terms: Terms, logprobs: Tensor, _: Tensor) -> Tensor:
        places = zip(terms.row_M.tolist(), terms.column_M.tolist(), logprobs.tolist(), strict=True)
        for row, column, logprob in places:
            found[row][column] = logprob
        return logprobs.sum()

    forward.run(rows, collect, grad=False)
    return [[columns[c] for c in sorted(columns)] for columns in found]


def rollout_log_ratios(rows: Sequence[Row], logprobs: Sequence[Sequence[float]]) -> Tensor:
    """[rollouts]: the mean over a rollout's trained tokens of logp - logp_sampled.

    `logprobs` as `row_logprobs` gives them.
    """
    count = 1 + max((row.rollout for row in rows), default=-1)
    totals, tokens = torch.zeros(count), torch.zeros(count)
    for row, found in zip(rows, logprobs, strict=True):
        old = [p for p, trained in zip(row.logprobs, row.trained, strict=True) if trained]
        totals[row.rollout] += sum(found) - sum(old)
        tokens[row.rollout] += len(found)
    return totals / tokens.clamp(min=1)


class TokenTable:
    """A number for each trained token of a batch's rows, found again by the terms of any pass."""

    def __init__(
        self, rows: Sequence[Row], values: Sequence[Sequence[float]], *, device: torch.device
    ) -> None:
        """`values` as `row_logprobs` gives them: by row, its trained tokens in order."""
        starts, flat = [0], list[float]()
        for row, found in zip(rows, values, strict=True):
            numbers = iter(found)
            flat += [next(numbers) if trained else 0.0 for trained in row.trained]
            starts.append(len(flat))
        self._starts = torch.tensor(starts, device=device)
        self._flat = torch.tensor(flat, device=device)

    def of(self, terms: Terms) -> Tensor:
        """The terms' numbers, [M]."""
        return self._flat[self._starts[terms.row_M] + terms.column_M]
