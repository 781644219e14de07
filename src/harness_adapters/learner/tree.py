"""Who sees whom in one forward pass over a packed trie: attention blocks and convolution ancestors.

A pass computes the packed tokens below a trunk whose per-layer states (keys and values, or the
inputs of a short convolution) are given. Plans are made once per pass and window, and shared by
all layers.

Shapes: N packed tokens, P trunk tokens.
"""

# ruff: noqa: N806, N815 - capital suffixes are array shapes

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch

from harness_adapters.learner.trie import Packed

Tensor: TypeAlias = torch.Tensor
States: TypeAlias = tuple[Tensor, ...]
"""What a layer hands to later tokens: keys and values [K, P, D], or convolution inputs [P, D]."""

CPU_BLOCK = 128
"""Queries per block on the CPU: the scores of a block stay in the second-level cache."""
GPU_BLOCK = 2048


@dataclass(frozen=True, slots=True)
class Block:
    """Queries [start, stop) of the packed order and the keys that they see."""

    start: int
    stop: int
    trunk_start: int
    """First trunk token that some query sees: 0 without a window."""
    keys_V: Tensor
    """Packed tokens that some query sees, the block itself last."""
    bias_BW: Tensor
    """0 or -inf for the last W keys, trunk first; the keys before are seen by all queries."""
    span: slice | None
    """The keys as a slice where they are neighbours; else they are gathered."""


@dataclass(slots=True)
class Tree:
    """What layers need to know of one forward pass."""

    packed: Packed
    dtype: torch.dtype
    device: torch.device
    trunk: dict[int, States] = field(default_factory=dict[int, States])
    """By layer. Empty: there is no trunk."""
    record: dict[int, States] | None = None
    """Filled with each layer's states when it is not None."""
    windows: dict[int, int] | None = None
    """Filled with the windows of the layers that have one when it is not None; `record` then holds
    all of their states, not only what a window still reaches."""
    masks: dict[tuple[int | None, int], Any] = field(
        default_factory=dict[tuple[int | None, int], Any]
    )
    """FlexAttention's masks, by window and kept trunk tokens."""
    _blocks: dict[int | None, list[Block]] = field(default_factory=dict[int | None, list[Block]])
    _ancestors: dict[int, Tensor] = field(default_factory=dict[int, Tensor])

    @property
    def per_head(self) -> bool:
        """Multiply head by head (CPU, cache-sized) or all heads at once (GPU)."""
        return bool(self.device.type == "cpu")

    @property
    def flex(self) -> bool:
        """Attend by FlexAttention: on NVIDIA GPUs."""
        return bool(self.device.type == "cuda")

    @property
    def is_chain(self) -> bool:
        """Every token follows the one before it."""
        return bool((self.packed.end_N == self.packed.nodes).all())

    def blocks(self, window: int | None) -> list[Block]:
        """Attention's plan; with a `window`, a query sees that many positions, its own included."""
        if window is not None and window > int(self.packed.positions_N.max()):
            window = None
        if window not in self._blocks:
            size = CPU_BLOCK if self.per_head else GPU_BLOCK
            self._blocks[window] = plan_blocks(
                self.packed, size=size, window=window, dtype=self.dtype, device=self.device
            )
        return self._blocks[window]

    def ancestors(self, reach: int) -> Tensor:
        """[N, reach]: each token's ancestors, the parent first, as places in a sequence of the
        trunk's last `reach` tokens (or what stands before the first) and then the packed ones.
        """
        if reach not in self._ancestors:
            parent_N = self.packed.parent_N
            before = np.arange(-1, reach - 1).clip(min=0)
            above = np.where(parent_N < 0, reach - 1, parent_N + reach)
            parents = np.concatenate([before, above])
            steps = [above]
            for _ in range(reach - 1):
                steps.append(parents[steps[-1]])
            table = np.stack(steps, axis=1)
            self._ancestors[reach] = torch.from_numpy(table).to(self.device)
        return self._ancestors[reach]


def plan_blocks(
    packed: Packed, *, size: int, window: int | None, dtype: torch.dtype, device: torch.device
) -> list[Block]:
    """Cut a packed order into blocks of `size` queries."""
    end_N, position_N = packed.end_N, packed.positions_N
    biases: dict[tuple[int, bytes], Tensor] = {}
    result = []
    for start in range(0, packed.nodes, size):
        stop = min(start + size, packed.nodes)
        own = np.arange(start, stop)
        # k < start is seen by some query of the block only if it is an ancestor of the first one:
        # subtrees are ranges, so one that reaches past `start` holds `start`.
        ancestors = np.flatnonzero(end_N[:start] > start)
        whole = ancestors[end_N[ancestors] >= stop]
        masked = np.concatenate([ancestors[end_N[ancestors] < stop], own])
        cut = np.zeros(0, np.int64)  # positions of trunk tokens with a bias
        trunk_start = 0
        if window is not None:
            oldest = int(position_N[start:stop].min()) - window + 1
            if int(position_N[start:stop].max()) - window >= 0:
                ancestors = ancestors[position_N[ancestors] >= oldest]
                trunk_start = min(max(oldest, 0), packed.trunk)
                cut = np.arange(trunk_start, packed.trunk)
                whole, masked = whole[:0], np.concatenate([ancestors, own])
        seen_BW = (masked[None] <= own[:, None]) & (own[:, None] < end_N[masked][None])
        keys = np.concatenate([whole, masked])
        if window is not None:
            first_B = position_N[start:stop, None] - window + 1
            seen_BW = np.concatenate(
                [cut[None] >= first_B, seen_BW & (position_N[masked][None] >= first_B)], axis=1
            )
        shape = (seen_BW.shape[1], seen_BW.tobytes())
        if shape not in biases:
            bias = torch.zeros(seen_BW.shape, dtype=dtype, device=device)
            biases[shape] = bias.masked_fill_(torch.from_numpy(~seen_BW).to(device), float("-inf"))
        neighbours = len(keys) == stop - keys[0] and bool((np.diff(keys) == 1).all())
        span = slice(int(keys[0]), stop) if neighbours else None
        places = torch.from_numpy(keys).to(device)
        result.append(Block(start, stop, trunk_start, places, biases[shape], span))
    return result
