"""The GPU's way to attend, as far as a CPU can tell: forward passes, mask, table of blocks."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn.attention import flex_attention

from harness_adapters.learner import flex, tree
from harness_adapters.learner.forward import row_logprobs
from harness_adapters.learner.plain_forward import PlainForward
from harness_adapters.learner.shared_forward import SharedForward
from harness_adapters.learner.tree import Tree
from harness_adapters.learner.trie import Packed, pack

from .builders import forked_rows, tiny_model
from .test_shared_forward import LOGPROB_TOLERANCE, with_lora


@pytest.mark.parametrize("family", ["llama", "gemma3", "lfm3_like"])
@pytest.mark.parametrize("trunk", [0, 40, 150])
def test_flex_attention_sees_the_same(
    family: str, trunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forward only: FlexAttention has no backward pass on a CPU."""
    # Its plain mathematics; else it is traced anew for every shape, which takes minutes.
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    rows = forked_rows(trunk)
    model = with_lora(tiny_model(family))
    expected = row_logprobs(PlainForward(copy.deepcopy(model)), rows)
    monkeypatch.setattr(tree.Tree, "flex", property(lambda _: True))
    for budget in (25, 4096):
        found = row_logprobs(SharedForward(model, token_budget=budget), rows)
        for a, b in zip(found, expected, strict=True):
            assert a == pytest.approx(b, abs=LOGPROB_TOLERANCE)


def seen_keys(packed: Packed, window: int | None, kept: int) -> torch.Tensor:
    """[N, kept + N] by definition: trunk, ancestors, itself; with a window the last of these."""
    seen = torch.zeros(packed.nodes, kept + packed.nodes, dtype=torch.bool)
    for node in range(packed.nodes):
        path, ancestor = [], node
        while ancestor >= 0:
            path.append(kept + ancestor)
            ancestor = int(packed.parent_N[ancestor])
        path += range(kept - 1, -1, -1)
        seen[node, path[:window]] = True
    return seen


@pytest.mark.parametrize("window", [None, 6, 30])
@pytest.mark.parametrize("trunk", [0, 5, 40])
def test_mask_and_blocks_follow_the_trie(
    trunk: int, window: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 8
    monkeypatch.setattr(flex, "BLOCK", size)
    packed = pack(forked_rows(trunk), trunk)
    kept = trunk if window is None else min(trunk, window - 1)
    expected = seen_keys(packed, window, kept)
    below = Tree(packed, torch.float32, torch.device("cpu"))
    mask = flex.branch_mask(below, window, kept)
    queries, keys = torch.arange(packed.nodes), torch.arange(kept + packed.nodes)
    zero = torch.tensor(0)
    found = mask.mask_mod(zero, zero, queries[:, None], keys[None])
    assert torch.equal(found, expected)
    assert mask.kv_num_blocks[0, 0].tolist() == [
        len(blocks) for blocks in flex.touched_blocks(below, window, kept)
    ]
    for number, blocks in enumerate(flex.touched_blocks(below, window, kept)):
        rows = expected[number * size : (number + 1) * size]
        needed = {int(key) // size for key in rows.any(0).nonzero()}
        # Kernels look at no other block. A window may name one that only its oldest query sees.
        assert needed <= set(blocks.tolist())
        assert window is not None or needed == set(blocks.tolist())
