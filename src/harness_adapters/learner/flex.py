"""Attention along a packed trie on a GPU, by FlexAttention.

Its mask is a function of two positions, and which blocks of keys a block of queries touches is
worked out from the trie here, so that nothing of size N x N is ever made, not even for a moment.
FlexAttention has no backward pass on the CPU: there `attention.py` does the work, and only the
forward pass of this file can be compared, uncompiled. Not run on a GPU yet.

Shapes: H query heads, K key-value heads, N packed tokens, P trunk tokens that were kept, D head
size.
"""

# ruff: noqa: N806 - capital suffixes are array shapes

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

from harness_adapters.learner.tree import Tree

Tensor: TypeAlias = torch.Tensor
BLOCK = 128
"""Queries and keys of a block: FlexAttention's own default."""


def branch_mask(tree: Tree, window: int | None, kept: int) -> BlockMask:
    """Queries [N] against keys [P + N], of whose trunk the last `kept` tokens are there."""
    packed, device = tree.packed, tree.device
    end_N = torch.from_numpy(packed.end_N).to(device)
    position_N = torch.from_numpy(packed.positions_N).to(device)
    first = packed.trunk - kept  # position of the first key

    def seen(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        own = (key - kept).clamp(min=0)
        below = (key >= kept) & (own <= query) & (query < end_N[own])
        visible = (key < kept) | below
        if window is None:
            return visible
        position = torch.where(key < kept, first + key, position_N[own])
        return visible & (position > position_N[query] - window)

    columns = touched_blocks(tree, window, kept)
    width = -(-(kept + packed.nodes) // BLOCK)
    counts = torch.tensor([[[len(blocks) for blocks in columns]]], dtype=torch.int32)
    table = torch.zeros(1, 1, len(columns), width, dtype=torch.int32)
    for row, blocks in enumerate(columns):
        table[0, 0, row, : len(blocks)] = torch.from_numpy(blocks.astype(np.int32))
    return BlockMask.from_kv_blocks(
        counts.to(device),
        table.to(device),
        BLOCK_SIZE=BLOCK,
        mask_mod=seen,
        seq_lengths=(packed.nodes, kept + packed.nodes),
    )


def touched_blocks(tree: Tree, window: int | None, kept: int) -> list[Any]:
    """For each block of queries, the blocks of keys of which some query sees something, rising."""
    packed = tree.packed
    first = packed.trunk - kept
    result = []
    for start in range(0, packed.nodes, BLOCK):
        stop = min(start + BLOCK, packed.nodes)
        ancestors = np.flatnonzero(packed.end_N[:start] > start)
        trunk = 0
        if window is not None:
            oldest = int(packed.positions_N[start:stop].min()) - window + 1
            ancestors = ancestors[packed.positions_N[ancestors] >= oldest]
            trunk = min(max(oldest - first, 0), kept)
        keys = np.concatenate(
            [np.arange(trunk, kept), kept + ancestors, kept + np.arange(start, stop)]
        )
        result.append(np.unique(keys // BLOCK))
    return result


@functools.cache
def _compiled() -> Any:
    return torch.compile(flex_attention, dynamic=True)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    trunk: tuple[Tensor, Tensor] | None,
    tree: Tree,
    window: int | None,
    scale: float,
) -> Tensor:
    """Query [H, N, D], key and value [K, N, D], the trunk's [K, P, D]; returns [H, N, D]."""
    if trunk is None and window is None and tree.is_chain:
        # The trunk itself: plain causal attention, for which there are faster kernels.
        out: Tensor = torch.nn.functional.scaled_dot_product_attention(
            query[None], key[None], value[None], is_causal=True, scale=scale, enable_gqa=True
        )
        return out[0]
    kept = 0
    if trunk is not None:
        kept = trunk[0].shape[1]
        key, value = torch.cat([trunk[0], key], 1), torch.cat([trunk[1], value], 1)
    name = (window, kept)
    if name not in tree.masks:
        tree.masks[name] = branch_mask(tree, window, kept)
    run = _compiled() if query.device.type == "cuda" else flex_attention
    out = run(
        query[None], key[None], value[None], block_mask=tree.masks[name], scale=scale,
        enable_gqa=True,
    )  # fmt: skip
    return out[0]
