"""Attention along a packed trie, below an optional trunk whose keys and values are given.

Queries go in blocks of depth-first neighbours. What a block can see is the trunk, the ancestors
of its first query and itself; nothing else is ever multiplied, and no mask is wider than what
differs inside a block. Scores are recomputed in the backward pass instead of being kept, so
memory is linear in tokens.

Registered in transformers under `NAME`; models whose attention asks for anything else than plain
causal softmax attention (a window, soft-capping, sinks) raise `UnsupportedAttentionError`.

Shapes: H query heads, K key-value heads, G = H / K, N packed tokens, P trunk tokens, D head size.
"""

# ruff: noqa: N803, N806, N815 - capital suffixes are array shapes

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from harness_adapters.learner.trie import Ints

NAME = "harness_adapters_tree"
BLOCK = 128
"""Queries per block on the CPU: the scores of a block stay in the second-level cache."""
GPU_BLOCK = 2048

Tensor: TypeAlias = torch.Tensor
KeyValue: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values of one layer after rotation, each [K, P, D]."""

_INERT = {"is_causal", "use_cache", "position_ids", "output_attentions", "output_hidden_states"}
"""Arguments that models pass along and that don't change plain causal attention."""


class UnsupportedAttentionError(Exception):
    """The model's attention is not plain causal softmax attention."""


@dataclass(frozen=True, slots=True)
class Block:
    """Queries [start, stop) of the packed order and the packed keys that they see."""

    start: int
    stop: int
    keys_V: Tensor
    """Ancestors that all queries see, ancestors that some see, then the block itself."""
    bias_BW: Tensor
    """0 or -inf for the last W keys; the first V - W are seen by all."""
    prefix: bool
    """The keys are exactly the first V tokens: slice instead of gathering."""


@dataclass(slots=True)
class Tree:
    """What the attention function needs to know of one forward pass."""

    blocks: list[Block]
    per_head: bool
    """Multiply head by head (CPU, cache-sized) or all heads at once (GPU)."""
    trunk: dict[int, KeyValue] = field(default_factory=dict[int, KeyValue])
    """By layer. Empty: there is no trunk."""
    record: dict[int, KeyValue] | None = None
    """Filled with each layer's keys and values when it is not None."""


def blocks(end_N: Ints, *, size: int, dtype: torch.dtype, device: torch.device) -> list[Block]:
    """Cut a packed order into blocks. `end_N` as in `trie.Packed`."""
    result = []
    count = len(end_N)
    for start in range(0, count, size):
        stop = min(start + size, count)
        # k < start is seen by some query of the block only if it is an ancestor of the first one:
        # subtrees are ranges, so one that reaches past `start` holds `start`.
        ancestors = np.flatnonzero(end_N[:start] > start)
        whole = ancestors[end_N[ancestors] >= stop]
        partly = ancestors[end_N[ancestors] < stop]
        own = np.arange(start, stop)
        masked = np.concatenate([partly, own])
        seen_BW = (masked[None] <= own[:, None]) & (own[:, None] < end_N[masked][None])
        keys = np.concatenate([whole, masked])
        bias = torch.zeros(seen_BW.shape, dtype=dtype, device=device)
        bias.masked_fill_(torch.from_numpy(~seen_BW).to(device), float("-inf"))
        is_prefix = len(keys) == stop and bool((keys == np.arange(stop)).all())
        result.append(Block(start, stop, torch.from_numpy(keys).to(device), bias, is_prefix))
    return result


def _heads(tree: Tree, count: int) -> list[slice]:
    return [slice(h, h + 1) for h in range(count)] if tree.per_head else [slice(0, count)]


def _gather(trunk: Tensor | None, own: Tensor, block: Block, heads: slice) -> Tensor:
    """Keys or values that a block sees, [heads, P + V, D]."""
    own = own[heads]
    own = own[:, : block.stop] if block.prefix else own.index_select(1, block.keys_V)
    return own if trunk is None else torch.cat([trunk[heads], own], dim=1)


def _probabilities(query: Tensor, keys: Tensor, block: Block) -> Tensor:
    """[heads, B * G, P + V] from queries [heads, B, G, D] that are already scaled."""
    heads, length, group, size = query.shape
    scores = torch.bmm(query.reshape(heads, length * group, size), keys.transpose(1, 2))
    width = block.bias_BW.shape[1]
    view = scores.view(heads, length, group, -1)[..., scores.shape[-1] - width :]
    view.add_(block.bias_BW[None, :, None])
    return torch.softmax(scores, dim=-1)


class _TreeAttention(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    """Query [K, N, G, D], scaled; key and value [K, N, D]; the trunk's [K, P, D] or None."""

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        trunk_key: Tensor | None,
        trunk_value: Tensor | None,
        tree: Tree,
    ) -> Tensor:
        ctx.save_for_backward(query, key, value, trunk_key, trunk_value)
        ctx.tree = tree
        out = torch.empty_like(query)
        for block in tree.blocks:
            for heads in _heads(tree, key.shape[0]):
                q = query[heads, block.start : block.stop]
                p = _probabilities(q, _gather(trunk_key, key, block, heads), block)
                o = torch.bmm(p, _gather(trunk_value, value, block, heads))
                out[heads, block.start : block.stop] = o.view(q.shape)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, trunk_key, trunk_value = ctx.saved_tensors
        tree: Tree = ctx.tree
        length = 0 if trunk_key is None else trunk_key.shape[1]
        # Sums over blocks run in float32 whatever the compute type is.
        sums = {"dtype": torch.float32, "device": key.device}
        grad_query = torch.empty_like(query)
        grad_key, grad_value = torch.zeros(key.shape, **sums), torch.zeros(key.shape, **sums)
        trunk_shape = (key.shape[0], length, key.shape[2])
        grad_trunk_key, grad_trunk_value = (
            torch.zeros(trunk_shape, **sums),
            torch.zeros(trunk_shape, **sums),
        )
        for block in tree.blocks:
            for heads in _heads(tree, key.shape[0]):
                q = query[heads, block.start : block.stop]
                keys = _gather(trunk_key, key, block, heads)
                values = _gather(trunk_value, value, block, heads)
                p = _probabilities(q, keys, block)
                flat_q = q.reshape(q.shape[0], -1, q.shape[-1])
                g = grad_out[heads, block.start : block.stop].reshape(flat_q.shape)
                dv = torch.bmm(p.transpose(1, 2), g)
                dp = torch.bmm(g, values.transpose(1, 2))
                ds = torch._softmax_backward_data(dp, p, -1, p.dtype)
                grad_query[heads, block.start : block.stop] = torch.bmm(ds, keys).view(q.shape)
                dk = torch.bmm(ds.transpose(1, 2), flat_q)
                grad_trunk_key[heads] += dk[:, :length]
                grad_trunk_value[heads] += dv[:, :length]
                _scatter(grad_key[heads], dk[:, length:], block)
                _scatter(grad_value[heads], dv[:, length:], block)
        dtype = key.dtype
        trunk_grads = (None, None)
        if trunk_key is not None:
            trunk_grads = (grad_trunk_key.to(dtype), grad_trunk_value.to(dtype))
        return grad_query, grad_key.to(dtype), grad_value.to(dtype), *trunk_grads, None


def _scatter(total: Tensor, part: Tensor, block: Block) -> None:
    if block.prefix:
        total[:, : block.stop] += part
    else:
        total.index_add_(1, block.keys_V, part.to(total.dtype))


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    tree: Tree | None = None,
    **extra: Any,
) -> tuple[Tensor, None]:
    """The function transformers calls: query [1, H, N, D], key and value [1, K, N, D].

    Returns [1, N, H, D]. Without `tree` it is plain causal attention for one unpadded batch.
    """
    unknown = [name for name in extra if extra[name] is not None and name not in _INERT]
    if unknown or dropout or attention_mask is not None:
        what = unknown or (["dropout"] if dropout else ["a mask"])
        raise UnsupportedAttentionError(f"attention of {type(module).__name__} uses {what[0]}")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if tree is None:
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2).contiguous(), None
    _, heads, count, size = query.shape
    groups = key.shape[1]
    k, v = key[0], value[0]
    layer = int(module.layer_idx)
    if tree.record is not None:
        tree.record[layer] = (k, v)
    trunk_key, trunk_value = tree.trunk.get(layer, (None, None))
    q = query[0].view(groups, heads // groups, count, size).transpose(1, 2) * scale
    out = _TreeAttention.apply(
        q.contiguous(), k.contiguous(), v.contiguous(), trunk_key, trunk_value, tree
    )
    return out.permute(1, 0, 2, 3).reshape(1, count, heads, size), None


ALL_ATTENTION_FUNCTIONS.register(NAME, tree_attention)
