"""Compute in bfloat16, learn in float32.

The model's own ("live") weights are what forward passes multiply. Each trained one has a float32
master that the optimizer steps; gradients are added to the master's in float32 as soon as a
backward pass has made them, so many micro-batches don't lose small ones. In float32 a weight is
its own master.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import torch

Tensor: TypeAlias = torch.Tensor


class MasterWeights:
    """Float32 masters of named live weights."""

    def __init__(self, named: Iterable[tuple[str, Any]]) -> None:
        self._live: dict[str, Tensor] = dict(named)
        self._masters: dict[str, Tensor] = {}
        for name, live in self._live.items():
            if live.dtype == torch.float32:
                self._masters[name] = live
                continue
            master = live.detach().float().requires_grad_()
            self._masters[name] = master
            live.register_post_accumulate_grad_hook(_mover(master))

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer steps, in a fixed order."""
        return list(self._masters.values())

    def state(self) -> dict[str, Tensor]:
        """Copies of the masters by name."""
        return {name: master.detach().clone() for name, master in self._masters.items()}

    def load(self, state: dict[str, Tensor]) -> None:
        """Set masters and live weights. Raises KeyError or RuntimeError if they don't fit."""
        with torch.no_grad():
            for name, master in self._masters.items():
                master.copy_(state[name])
        self.push()

    def push(self) -> None:
        """Copy masters into the live weights, after an optimizer step."""
        with torch.no_grad():
            for name, live in self._live.items():
                if live is not self._masters[name]:
                    live.copy_(self._masters[name])

    def zero_grad(self) -> None:
        """Forget gradients."""
        for tensors in (self._live, self._masters):
            for tensor in tensors.values():
                tensor.grad = None


def _mover(master: Tensor) -> Any:
    def move(live: Tensor) -> None:
        if master.grad is None:
            master.grad = live.grad.float()
        else:
            master.grad += live.grad
        live.grad = None

    return move
