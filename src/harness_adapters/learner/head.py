"""Log-probabilities of chosen tokens from hidden states, without ever keeping all logits.

Rows of logits exist for one chunk at a time. The gradient of log p(t | h) with respect to h is
(W[t] - softmax(W h) W) / temperature: it does not depend on the loss, so where the output matrix
is frozen it is computed in the forward pass while the logits are at hand, and the backward pass
is a multiplication. Where the matrix is trained, the backward pass recomputes the logits.

Shapes: M terms, D hidden size, V vocabulary.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch.utils.checkpoint import checkpoint

CHUNK = 128
Tensor: TypeAlias = torch.Tensor


class _Linear(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    """For an output layer that is a plain matrix [V, D] without bias."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, temperature: float
    ) -> tuple[Tensor, Tensor]:
        wants_hidden, wants_weight = ctx.needs_input_grad[:2]
        early = wants_hidden and not wants_weight
        directions = torch.empty_like(hidden) if early else None
        logprobs, entropies, normalisers = [], [], []
        for start in range(0, len(targets), CHUNK):
            part = slice(start, start + CHUNK)
            logits = (hidden[part] @ weight.T).float().div_(temperature)
            normaliser = logits.logsumexp(-1)
            logprobs.append(logits.gather(1, targets[part, None])[:, 0] - normaliser)
            p = (logits - normaliser[:, None]).exp_()
            entropies.append(normaliser - torch.linalg.vecdot(p, logits))
            normalisers.append(normaliser)
            if directions is not None:
                mean = p.to(weight.dtype) @ weight
                directions[part] = (weight[targets[part]] - mean) / temperature
        ctx.temperature = temperature
        if early:
            ctx.save_for_backward(directions)
        else:
            ctx.save_for_backward(hidden, weight, targets, torch.cat(normalisers))
        entropy = torch.cat(entropies)
        ctx.mark_non_differentiable(entropy)
        return torch.cat(logprobs), entropy

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        if len(ctx.saved_tensors) == 1:
            (directions,) = ctx.saved_tensors
            return directions * grad[:, None].to(directions.dtype), None, None, None
        hidden, weight, targets, normalisers = ctx.saved_tensors
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device)
        for start in range(0, len(targets), CHUNK):
            part = slice(start, start + CHUNK)
            logits = (hidden[part] @ weight.T).float().div_(ctx.temperature)
            delta = (logits - normalisers[part, None]).exp_().neg_()
            delta[torch.arange(len(delta), device=delta.device), targets[part]] += 1.0
            delta = (delta * (grad[part, None] / ctx.temperature)).to(weight.dtype)
            grad_hidden[part] = delta @ weight
            grad_weight += delta.T @ hidden[part]
        return grad_hidden, grad_weight.to(weight.dtype), None, None


def target_logprobs(
    head: Any, hidden: Tensor, targets: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """log p(targets[m] | hidden[m]) [M] and the entropy [M, no gradient], in float32 nats."""
    if type(head) is torch.nn.Linear and head.bias is None:
        return _Linear.apply(hidden, head.weight, targets, temperature)  # type: ignore[no-any-return]

    def part(hidden: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return logits_logprobs(head(hidden), targets, temperature)

    pieces = [
        checkpoint(part, hidden[i : i + CHUNK], targets[i : i + CHUNK], use_reentrant=False)
        for i in range(0, len(targets), CHUNK)
    ]
    return torch.cat([p[0] for p in pieces]), torch.cat([p[1] for p in pieces])


def logits_logprobs(
    logits: Tensor, targets: Tensor, temperature: float = 1.0
) -> tuple[Tensor, Tensor]:
    """The same from logits [M, V]."""
    scaled = logits.float() / temperature
    normaliser = scaled.logsumexp(-1)
    with torch.no_grad():
        p = (scaled - normaliser[:, None]).exp()
        entropy = normaliser - (p * scaled).sum(-1)
    return scaled.gather(1, targets[:, None])[:, 0] - normaliser, entropy
