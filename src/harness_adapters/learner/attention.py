"""Attention along a packed trie, below an optional trunk whose keys and values are given.

Queries go in blocks of depth-first neighbours. What a block can see is the trunk, the ancestors
of its first query and itself, of which a sliding window takes the last positions; nothing else is
ever multiplied, and no mask is wider than what differs inside a block. Scores are recomputed in
the backward pass instead of being kept, so memory is linear in tokens.

Registered in transformers under `NAME`; models whose attention asks for anything else than causal
softmax attention, with a window or without (soft-capping, sinks), raise
`UnsupportedAttentionError`.

Shapes: H query heads, K key-value heads, G = H / K, N packed tokens, P trunk tokens, D head size.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from harness_adapters.learner import flex
from harness_adapters.learner.tree import Block, Tree

NAME = "harness_adapters_tree"

Tensor: TypeAlias = torch.Tensor

_INERT = {"is_causal", "use_cache", "position_ids", "output_attentions", "output_hidden_states"}
"""Arguments that models pass along and that don't change plain causal attention."""


class UnsupportedAttentionError(Exception):
    """The model's attention is not plain causal softmax attention."""


def _heads(tree: Tree, count: int) -> list[slice]:
    return [slice(h, h + 1) for h in range(count)] if tree.per_head else [slice(0, count)]


def _gather(trunk: Tensor | None, own: Tensor, block: Block, heads: slice, skip: int) -> Tensor:
    """Keys or values that a block sees, [heads, P - skip + V, D]."""
    own = own[heads]
    own = own.index_select(1, block.keys_V) if block.span is None else own[:, block.span]
    return own if trunk is None else torch.cat([trunk[heads, skip:], own], dim=1)


def _probabilities(query: Tensor, keys: Tensor, block: Block) -> Tensor:
    """[heads, B * G, P + V] from queries [heads, B, G, D] that are already scaled."""
    heads, length, group, size = query.shape
    scores = torch.bmm(query.reshape(heads, length * group, size), keys.transpose(1, 2))
    width = block.bias_BW.shape[1]
    view = scores.view(heads, length, group, -1)[..., scores.shape[-1] - width :]
    view.add_(block.bias_BW[None, :, None])
    return torch.softmax(scores, dim=-1)


class _TreeAttention(torch.autograd.Function):  # type: ignore[misc]  # torch is untyped here
    """Query [K, N, G, D], scaled; key and value [K, N, D]; the trunk's [K, P, D] or None.

    The trunk's may lack its first tokens, those that no window reaches.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        trunk_key: Tensor | None,
        trunk_value: Tensor | None,
        tree: Tree,
        window: int | None,
    ) -> Tensor:
        ctx.save_for_backward(query, key, value, trunk_key, trunk_value)
        ctx.tree, ctx.window = tree, window
        left_out = _left_out(tree, trunk_key)
        out = torch.empty_like(query)
        for block in tree.blocks(window):
            skip = max(0, block.trunk_start - left_out)
            for heads in _heads(tree, key.shape[0]):
                q = query[heads, block.start : block.stop]
                p = _probabilities(q, _gather(trunk_key, key, block, heads, skip), block)
                o = torch.bmm(p, _gather(trunk_value, value, block, heads, skip))
                out[heads, block.start : block.stop] = o.view(q.shape)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, trunk_key, trunk_value = ctx.saved_tensors
        tree: Tree = ctx.tree
        length = 0 if trunk_key is None else trunk_key.shape[1]
        left_out = _left_out(tree, trunk_key)
        # Sums over blocks run in float32 whatever the compute type is.
        sums = {"dtype": torch.float32, "device": key.device}
        grad_query = torch.empty_like(query)
        grad_key, grad_value = torch.zeros(key.shape, **sums), torch.zeros(key.shape, **sums)
        trunk_shape = (key.shape[0], length, key.shape[2])
        grad_trunk_key, grad_trunk_value = (
            torch.zeros(trunk_shape, **sums),
            torch.zeros(trunk_shape, **sums),
        )
        for block in tree.blocks(ctx.window):
            skip = max(0, block.trunk_start - left_out)
            own = max(0, length - skip)  # where the packed keys begin
            for heads in _heads(tree, key.shape[0]):
                q = query[heads, block.start : block.stop]
                keys = _gather(trunk_key, key, block, heads, skip)
                values = _gather(trunk_value, value, block, heads, skip)
                p = _probabilities(q, keys, block)
                flat_q = q.reshape(q.shape[0], -1, q.shape[-1])
                g = grad_out[heads, block.start : block.stop].reshape(flat_q.shape)
                dv = torch.bmm(p.transpose(1, 2), g)
                dp = torch.bmm(g, values.transpose(1, 2))
                ds = torch._softmax_backward_data(dp, p, -1, p.dtype)
                grad_query[heads, block.start : block.stop] = torch.bmm(ds, keys).view(q.shape)
                dk = torch.bmm(ds.transpose(1, 2), flat_q)
                grad_trunk_key[heads, skip:] += dk[:, :own]
                grad_trunk_value[heads, skip:] += dv[:, :own]
                _scatter(grad_key[heads], dk[:, own:], block)
                _scatter(grad_value[heads], dv[:, own:], block)
        dtype = key.dtype
        trunk_grads = (None, None)
        if trunk_key is not None:
            trunk_grads = (grad_trunk_key.to(dtype), grad_trunk_value.to(dtype))
        return grad_query, grad_key.to(dtype), grad_value.to(dtype), *trunk_grads, None, None


def reached(window: int) -> int:
    """How many of the tokens before it a window's next query sees."""
    return window - 1


def _left_out(tree: Tree, trunk: Tensor | None) -> int:
    """Tokens at the trunk's start whose states weren't kept: no window reaches them."""
    return 0 if trunk is None else tree.packed.trunk - trunk.shape[1]


def _scatter(total: Tensor, part: Tensor, block: Block) -> None:
    if block.span is None:
        total.index_add_(1, block.keys_V, part.to(total.dtype))
    else:
        total[:, block.span] += part


def tree_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    tree: Tree | None = None,
    **extra: Any,
) -> tuple[Tensor, None]:
    """The function transformers calls: query [1, H, N, D], key and value [1, K, N, D].

    Returns [1, N, H, D]. Without `tree` it is plain causal attention for one unpadded batch. With
    `sliding_window` a query sees that many positions, its own included.
    """
    unknown = [name for name in extra if extra[name] is not None and name not in _INERT]
    if unknown or dropout or attention_mask is not None:
        what = unknown or (["dropout"] if dropout else ["a mask"])
        raise UnsupportedAttentionError(f"attention of {type(module).__name__} uses {what[0]}")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if tree is None:
        if sliding_window is not None and query.shape[2] > sliding_window:
            raise UnsupportedAttentionError("a window needs the tree that it is cut from")
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2).contiguous(), None
    _, heads, count, size = query.shape
    groups = key.shape[1]
    # One copy for the graph, for the record and for those that read the trunk.
    k, v = key[0].contiguous(), value[0].contiguous()
    layer = int(module.layer_idx)
    if tree.record is not None:
        kept = count
        if sliding_window is not None:
            if tree.windows is None:
                kept = min(count, reached(sliding_window))
            else:
                tree.windows[layer] = sliding_window
        tree.record[layer] = (k[:, count - kept :], v[:, count - kept :])
    trunk_key, trunk_value = tree.trunk.get(layer, (None, None))
    if tree.flex:
        trunk = None if trunk_key is None else (trunk_key, trunk_value)
        out = flex.attend(query[0], k, v, trunk, tree, sliding_window, scale)
        return out.transpose(0, 1)[None].contiguous(), None
    q = query[0].view(groups, heads // groups, count, size).transpose(1, 2) * scale
    out = _TreeAttention.apply(q.contiguous(), k, v, trunk_key, trunk_value, tree, sliding_window)
    return out.permute(1, 0, 2, 3).reshape(1, count, heads, size), None


ALL_ATTENTION_FUNCTIONS.register(NAME, tree_attention)
