"""Exact prefix sharing: every distinct token of a step is forwarded once.

The *trunk*, what all rows of the step start with (system prompt and tool schemas: usually most of
the tokens), is computed first (`trunk.py`). Branches are packed by trie into micro-batches that
read the trunk's states (keys and values, inputs of short convolutions) as leaves; their gradients
add up over the micro-batches, and one backward pass through the trunk follows. So nothing is
approximated, and besides the trunk's states only a few micro-batches' graphs are in memory at a
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from harness_adapters.learner import attention, short_conv
from harness_adapters.learner.forward import Forward, Loss, Terms, TokenCounts, base_model
from harness_adapters.learner.head import target_logprobs
from harness_adapters.learner.plain_forward import PlainForward
from harness_adapters.learner.rows import Row
from harness_adapters.learner.tree import States, Tree
from harness_adapters.learner.trie import (
    Packed,
    distinct_tokens,
    micro_batches,
    pack,
    trunk_length,
)
from harness_adapters.learner.trunk import Recorded, SegmentedTrunk, Trunk, WholeTrunk

Tensor: TypeAlias = torch.Tensor

LAYERS = {"full_attention", "sliding_attention", "conv"}
"""Kinds of layers, as configurations name them, that follow a trie."""
WHOLE_TRUNK = 4
"""A trunk of up to so many micro-batches keeps its graph; a longer one is computed twice."""
LONGEST_PROBE = 1024
"""A window up to this size is looked past when a model is asked whether sharing is exact."""


class SharedForward:
    """For models of attention, sliding windows and short convolutions; see `choose_forward`."""

    def __init__(
        self,
        model: Any,
        *,
        token_budget: int = 2048,
        temperature: float = 1.0,
        checkpointing: bool = False,
    ) -> None:
        """`token_budget`: distinct tokens of a micro-batch. `checkpointing` trades a second
        forward pass for the activations inside the layers.
        """
        self._base = base_model(model)
        self._base.config._attn_implementation = attention.NAME
        short_conv.follow_trees(self._base)
        self._budget = token_budget
        self._temperature = temperature
        if checkpointing:
            self._base.gradient_checkpointing_enable(
                gradient_checkpointing_kwargs={"use_reentrant": False}
            )
            self._base.train()
        weight = self._base.get_input_embeddings().weight
        self._device, self._dtype = weight.device, weight.dtype

    def run(self, rows: Sequence[Row], loss: Loss, *, grad: bool = True) -> TokenCounts:
        """See `forward.Forward`."""
        if not rows:
            return TokenCounts()
        trunk = trunk_length(rows)
        stem: Trunk | None = None
        if trunk:
            whole = trunk <= WHOLE_TRUNK * self._budget
            kind = WholeTrunk if whole else SegmentedTrunk
            stem = kind(self._pass, rows[0].ids[:trunk], segment=self._budget, grad=grad)
        leaves = stem.leaves if stem is not None else {}
        forwarded, batches, terms = trunk, 0, 0
        for batch in micro_batches(rows, trunk, self._budget):
            packed = pack([rows[i] for i in batch], trunk)
            places = self._tensor(batch)
            with torch.set_grad_enabled(grad):
                value = self._branches(packed, leaves, places, loss)
            if grad:
                value.backward()
            forwarded += packed.nodes
            batches += 1
            terms += len(packed.target_M)
        if grad and stem is not None:
            stem.backward()
        return TokenCounts(
            merged=sum(len(row.ids) for row in rows),
            distinct=distinct_tokens(rows),
            forwarded=forwarded,
            trained=terms,
            trunk=trunk,
            micro_batches=batches,
        )

    def _pass(self, packed: Packed, trunk: dict[int, States], *, windows: bool) -> Recorded:
        """States of every layer below `trunk`, and the layers' windows if asked for."""
        tree = Tree(
            packed, self._dtype, self._device, trunk, record={}, windows={} if windows else None
        )
        self._body(packed, tree)
        # A checkpointed layer runs again in the backward pass: what it then recorded would keep
        # all its activations alive.
        record, tree.record = tree.record, None
        return record or {}, tree.windows or {}

    def _branches(
        self, packed: Packed, leaves: dict[int, States], places: Tensor, loss: Loss
    ) -> Tensor:
        tree = Tree(packed, self._dtype, self._device, trunk=leaves)
        hidden = self._body(packed, tree)
        pairs, back = torch.unique(
            torch.stack([self._tensor(packed.source_M), self._tensor(packed.target_M)]),
            dim=1,
            return_inverse=True,
        )
        logprobs, entropy = target_logprobs(
            self._base.get_output_embeddings(), hidden[pairs[0]], pairs[1], self._temperature
        )
        terms = Terms(
            rollout_M=self._tensor(packed.rollout_M),
            row_M=places[self._tensor(packed.row_M)],
            column_M=self._tensor(packed.column_M),
            old_logprobs_M=self._tensor(packed.old_logprobs_M),
        )
        return loss(terms, logprobs[back], entropy[back])

    def _body(self, packed: Packed, tree: Tree) -> Tensor:
        """Last hidden states [N, D]."""
        out = self._base.base_model(
            input_ids=self._tensor(packed.ids_N)[None],
            position_ids=self._tensor(packed.positions_N)[None],
            use_cache=False,
            tree=tree,
        )
        return out.last_hidden_state[0]

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, device=self._device)


def choose_forward(
    model: Any,
    *,
    token_budget: int = 2048,
    temperature: float = 1.0,
    checkpointing: bool = False,
) -> tuple[Forward, str]:
    """The shared forward where it is exact for this model, else the plain one and why.

    The model is asked, not its name: a few tokens with a fork go both ways, and the results must
    agree. Layers that look back in another way (state spaces, chunks) don't.
    """
    base = base_model(model)
    implementation = base.config._attn_implementation
    plain = PlainForward(model, temperature=temperature)
    reason = _structure(base.config)
    if not reason:
        shared = SharedForward(
            model, token_budget=token_budget, temperature=temperature, checkpointing=checkpointing
        )
        reason = _probe(base, shared, plain, implementation)
        if not reason:
            return shared, ""
        base.config._attn_implementation = implementation
        if checkpointing:
            base.gradient_checkpointing_disable()
    return plain, f"prefix sharing is off for {type(base).__name__}: {reason}; rows run one by one"


def _structure(config: Any) -> str:
    kinds = set(getattr(config, "layer_types", None) or LAYERS)
    return f"it has {', '.join(sorted(kinds - LAYERS))} layers" if kinds - LAYERS else ""


def _probe(base: Any, shared: SharedForward, plain: PlainForward, implementation: str) -> str:
    """Empty if both ways agree on a fork below a trunk, else the reason against sharing.

    The rows reach past a sliding window, unless that alone would take long.
    """
    vocabulary = base.get_input_embeddings().weight.shape[0]
    window = int(getattr(base.config, "sliding_window", None) or 0)
    stem = 14 + (window if window <= LONGEST_PROBE else 0)
    tokens = [(7 * i * i + 3 * i + 5) % vocabulary for i in range(stem + 10)]
    rows = [
        Row(
            0,
            tokens[:stem] + tail,
            [False] * (stem - 2) + [True] * (2 + len(tail)),
            [0.0] * (stem + len(tail)),
        )
        for tail in (tokens[stem : stem + 6], tokens[stem + 6 :])
    ]
    results: list[dict[tuple[int, int], float]] = []
    try:
        for forward, name in ((shared, attention.NAME), (plain, implementation)):
            base.config._attn_implementation = name
            results.append({})
            forward.run(rows, _collector(results[-1]), grad=False)
    except (attention.UnsupportedAttentionError, TypeError) as error:
        return str(error)
    finally:
        base.config._attn_implementation = attention.NAME
    apart = max(abs(results[0][key] - results[1][key]) for key in results[1])
    tolerance = 1e-3 if shared._dtype == torch.float32 else 0.3
    return "" if apart <= tolerance else f"shared and plain log-probabilities differ by {apart:.3g}"


def _collector(into: dict[tuple[int, int], float]) -> Loss:
    def collect(terms: Terms, logprobs: Tensor, _: Tensor) -> Tensor:
        keys = zip(terms.row_M.tolist(), terms.column_M.tolist(), strict=True)
        into.update(zip(keys, logprobs.tolist(), strict=True))
        return logprobs.sum()

    return collect
