"""Exact prefix sharing: every distinct token of a step is forwarded once.

The *trunk*, what all rows of the step start with (system prompt and tool schemas: usually most of
the tokens), is computed once, with its graph. Branches are packed by trie into micro-batches that
attend to the trunk's keys and values as leaves; their gradients add up over the micro-batches, and
one backward pass through the trunk follows. So nothing is approximated, and the graphs of the trunk
and of one micro-batch are all that is in memory at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch

from harness_adapters.learner import attention
from harness_adapters.learner.attention import KeyValue, Tree
from harness_adapters.learner.forward import Forward, Loss, Terms, TokenCounts, base_model
from harness_adapters.learner.head import target_logprobs
from harness_adapters.learner.plain_forward import PlainForward
from harness_adapters.learner.rows import Row
from harness_adapters.learner.trie import (
    Packed,
    chain,
    distinct_tokens,
    micro_batches,
    pack,
    trunk_length,
)

Tensor: TypeAlias = torch.Tensor


class SharedForward:
    """For models whose every layer is plain full attention; see `choose_forward`."""

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
        with torch.set_grad_enabled(grad):
            states = self._trunk(rows[0].ids[:trunk]) if trunk else {}
        leaves = {layer: _leaves(pair) for layer, pair in states.items()} if grad else states
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
        if grad and trunk:
            _backward_through_trunk(states, leaves)
        return TokenCounts(
            merged=sum(len(row.ids) for row in rows),
            distinct=distinct_tokens(rows),
            forwarded=forwarded,
            trained=terms,
            trunk=trunk,
            micro_batches=batches,
        )

    def _trunk(self, ids: list[int]) -> dict[int, KeyValue]:
        """Keys and values of every layer, with graph."""
        packed = chain(ids)
        record: dict[int, KeyValue] = {}
        self._body(packed, Tree(self._blocks(packed), self._per_head, record=record))
        return dict(record)

    def _branches(
        self, packed: Packed, leaves: dict[int, KeyValue], places: Tensor, loss: Loss
    ) -> Tensor:
        tree = Tree(self._blocks(packed), self._per_head, trunk=leaves)
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

    @property
    def _per_head(self) -> bool:
        return bool(self._device.type == "cpu")

    def _blocks(self, packed: Packed) -> list[attention.Block]:
        size = attention.BLOCK if self._per_head else attention.GPU_BLOCK
        return attention.blocks(packed.end_N, size=size, dtype=self._dtype, device=self._device)

    def _tensor(self, values: Any) -> Tensor:
        return torch.as_tensor(values, device=self._device)


def _leaves(pair: KeyValue) -> KeyValue:
    key, value = (t.detach().contiguous().requires_grad_() for t in pair)
    return key, value


def _backward_through_trunk(states: dict[int, KeyValue], leaves: dict[int, KeyValue]) -> None:
    outputs, grads = [], []
    for layer, pair in states.items():
        for output, leaf in zip(pair, leaves[layer], strict=True):
            if output.requires_grad and leaf.grad is not None:
                outputs.append(output)
                grads.append(leaf.grad)
    if outputs:
        torch.autograd.backward(outputs, grads)


def choose_forward(
    model: Any,
    *,
    token_budget: int = 2048,
    temperature: float = 1.0,
    checkpointing: bool = False,
) -> tuple[Forward, str]:
    """The shared forward where it is exact for this model, else the plain one and why.

    The model is asked, not its name: a few tokens with a fork go both ways, and the results must
    agree. Layers that look past attention (short convolutions, windows, state spaces) don't.
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
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    if kinds != {"full_attention"}:
        return f"it has {', '.join(sorted(kinds - {'full_attention'}))} layers"
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return "its attention has a window"
    return ""


def _probe(base: Any, shared: SharedForward, plain: PlainForward, implementation: str) -> str:
    """Empty if both ways agree on a fork below a trunk, else the reason against sharing."""
    vocabulary = base.get_input_embeddings().weight.shape[0]
    tokens = [(7 * i * i + 3 * i + 5) % vocabulary for i in range(24)]
    rows = [
        Row(
            0, tokens[:14] + tail, [False] * 12 + [True] * (2 + len(tail)), [0.0] * (14 + len(tail))
        )
        for tail in (tokens[14:20], tokens[20:24])
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
