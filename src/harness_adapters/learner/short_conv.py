"""Gated short convolutions (LFM2 and its kin) along a packed trie.

A causal convolution of kernel L mixes a token with the L - 1 before it. In a packed trie these
are not its neighbours but its ancestors, the last of which may lie in the trunk: they are gathered,
and the sum is the same. `follow_trees` teaches it to a model; without a tree the model runs its
own code.

Shapes: N packed tokens, L kernel size, D hidden size.
"""

# ruff: noqa: N803, N806 - capital suffixes are array shapes

from __future__ import annotations

import types
from typing import Any, TypeAlias

import torch

from harness_adapters.learner.tree import Tree

Tensor: TypeAlias = torch.Tensor
CLASS_ENDING = "ShortConv"
"""What transformers and checkpoints with own code call the module, after the family's name."""
PARTS = ("in_proj", "conv", "out_proj", "layer_idx")


def follow_trees(model: Any) -> int:
    """Let every short convolution of `model` follow the `tree` that its layer is called with.

    Returns how many there are. Harmless to call again.
    """
    count = 0
    for layer in list(model.modules()):
        for child in layer.children():
            if not type(child).__name__.endswith(CLASS_ENDING):
                continue
            if not all(hasattr(child, part) for part in PARTS):
                continue
            if type(child.conv) is not torch.nn.Conv1d:
                continue  # wrapped by an adapter of its own: left alone, the probe will tell
            count += 1
            if not hasattr(child, "harness_adapters_tree"):
                child.harness_adapters_tree = None
                child.forward = types.MethodType(_forward, child)
                # transformers hands `tree` to the layer but not on to its convolution. As the hook
                # belongs to the layer's call, a checkpointed layer that is computed again in the
                # backward pass gets the tree of its own pass.
                layer.register_forward_pre_hook(_note_tree(child), with_kwargs=True)
    return count


def _note_tree(convolution: Any) -> Any:
    def note(_: Any, __: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        convolution.harness_adapters_tree = keywords.get("tree")

    return note


def _forward(self: Any, hidden_states: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
    """[1, N, D] to the same; with B, C, x = in_proj(h): out_proj(C * conv(B * x))."""
    tree: Tree | None
    tree, self.harness_adapters_tree = self.harness_adapters_tree, None
    if tree is None:
        own: Tensor = type(self).forward(self, hidden_states, *arguments, **keywords)
        return own
    before, after, x = self.in_proj(hidden_states)[0].chunk(3, dim=-1)
    mixed = convolve(before * x, self.conv, tree, int(self.layer_idx))
    out: Tensor = self.out_proj((after * mixed)[None])
    return out


def convolve(x_ND: Tensor, convolution: torch.nn.Conv1d, tree: Tree, layer: int) -> Tensor:
    """The depthwise causal convolution of each token with its own ancestors, [N, D]."""
    weight_LD = convolution.weight[:, 0].T.to(x_ND.dtype)
    reach = len(weight_LD) - 1
    states = tree.trunk.get(layer)
    above = x_ND.new_zeros(reach, x_ND.shape[1]) if states is None else states[0]
    if tree.record is not None:
        tree.record[layer] = (torch.cat([above, x_ND])[-reach:],)
    sequence = torch.cat([above, x_ND])
    places = tree.ancestors(reach)
    total = x_ND * weight_LD[reach]
    for step in range(reach):
        total = total + sequence.index_select(0, places[:, step]) * weight_LD[reach - 1 - step]
    return total if convolution.bias is None else total + convolution.bias
