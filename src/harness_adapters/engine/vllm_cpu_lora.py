"""vLLM general plugin: multi-LoRA on the CPU backend, right and fast.

vLLM 0.32 for the CPU has three faults that matter here; each is repaired where it is, and only
when vLLM runs on the CPU:

1. Index -1 ("no adapter") selects the *last* adapter slot, so in a mixed batch requests to the
   base model get somebody's adapter.
2. Every token gathers its own copy of the LoRA matrices: prefill with an adapter is 13 times
   slower than without.
3. The rotary kernel reads 3-D queries and keys (LFM2) as if they were 2-D and rotates only the
   first position of a batch rightly.

For 1 and 2 the tokens of a step are grouped by adapter once, and each group is one pair of small
matrix products; tokens without an adapter are left alone. A layer that vLLM merged of several
(query, key and value) has its adapters joined to one pair as well, once for each adapter that is
loaded: on a CPU such products cost what it takes to begin them.

Loaded by vLLM in each of its processes through the entry point group `vllm.general_plugins`.
"""

from __future__ import annotations

from typing import Any

_MARK = "_harness_adapters_grouped"


def register() -> None:
    """Patch vLLM's CPU classes. Does nothing off the CPU, and nothing twice."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return
    _repair_lora()
    _repair_rotary()


def group_rows(slots: list[int]) -> list[tuple[int, Any]]:
    """Rows of each adapter slot: (slot, rows) with rows None for all, a slice, or an index tensor.

    `slots` holds one adapter slot per row, -1 for none; rows without an adapter are in no group.
    """
    import torch

    used = sorted(set(slots))
    if len(used) == 1:
        return [] if used[0] < 0 else [(used[0], None)]
    groups: list[tuple[int, Any]] = []
    for slot in used:
        if slot < 0:
            continue
        rows = [i for i, other in enumerate(slots) if other == slot]
        contiguous = rows[-1] - rows[0] + 1 == len(rows)
        groups.append((slot, slice(rows[0], rows[-1] + 1) if contiguous else torch.tensor(rows)))
    return groups


def _add(y: Any, delta: Any, rows: Any, scale: float) -> None:
    if rows is None:
        y.add_(delta, alpha=scale)
    elif isinstance(rows, slice):
        y[rows].add_(delta, alpha=scale)
    else:
        y.index_add_(0, rows, delta, alpha=scale)


def join(
    lora_a: tuple[Any, ...], lora_b: tuple[Any, ...], slot: int, slices: tuple[int, ...]
) -> tuple[Any, Any]:
    """One slot's matrices of all output slices as one pair, A `[ranks, in]` and B `[out, ranks]`.

    B is block-diagonal: each slice keeps to its own part of A, and zeros change no sum. vLLM may
    pad an adapter's output or the model's; B has the rows of `slices`, those without weights are 0.
    """
    import torch
    from torch.nn.functional import pad

    parts_a, parts_b = [], []
    for stack_a, stack_b, width in zip(lora_a, lora_b, slices, strict=True):
        a, b = stack_a[slot], stack_b[slot]
        if a.dim() == 3:
            a, b = a[0], b[0]
        parts_a.append(a)
        parts_b.append(pad(b[:width], (0, 0, 0, max(0, width - b.shape[0]))))
    if len(parts_a) == 1:
        return parts_a[0], parts_b[0]
    return torch.cat(parts_a), torch.block_diag(*parts_b)


def apply_grouped(
    y: Any,
    inputs: Any,
    lora_a: tuple[Any, ...],
    lora_b: tuple[Any, ...],
    scale: float,
    slices: tuple[int, ...],
    groups: list[tuple[int, Any]],
    joined: dict[tuple[int, int], tuple[Any, Any]],
) -> None:
    """y += scale * B A x in place, group by group; y `[rows, out]`, inputs `[rows, in]`.

    `lora_a` and `lora_b` hold one stack per output slice, `[slots, 1, rank, in]` and
    `[slots, 1, out, rank]` (or without the second axis); `slices` are the widths of the slices.
    `joined` keeps what was joined of them by (address, slot); empty it when a slot gets new ones.
    """
    from torch.nn.functional import linear

    for slot, rows in groups:
        key = (lora_a[0].data_ptr(), slot)
        if key not in joined:
            joined[key] = join(lora_a, lora_b, slot, slices)
        a, b = joined[key]
        delta = linear(linear(inputs if rows is None else inputs[rows], a), b)
        _add(y[:, : delta.shape[1]], delta, rows, scale)


def _repair_lora() -> None:
    from vllm.lora.model_manager import LoRAModelManager
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU

    if hasattr(PunicaWrapperCPU, _MARK):
        return
    inherited_update = PunicaWrapperCPU.update_metadata
    inherited_activate = LoRAModelManager.activate_adapter
    joined: dict[tuple[int, int], tuple[Any, Any]] = {}

    def activate_adapter(self: Any, lora_id: int) -> bool:
        if lora_id not in self._active_adapters:  # else vLLM changes nothing
            joined.clear()
        activated: bool = inherited_activate(self, lora_id)
        return activated

    def update_metadata(self: Any, *args: Any, **kwargs: Any) -> None:
        inherited_update(self, *args, **kwargs)
        self._token_groups = group_rows(self.token_lora_indices.tolist())
        self._sampler_groups = group_rows(self.sampler_indices.tolist())

    def add_lora_linear(
        self: Any,
        y: Any,
        x: Any,
        lora_a_stacked: tuple[Any, ...],
        lora_b_stacked: tuple[Any, ...],
        scale: float,
        output_slices: tuple[int, ...],
        *,
        buffer: Any = None,
        **kwargs: Any,
    ) -> None:
        y, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        groups = self._token_groups
        apply_grouped(y, x, lora_a_stacked, lora_b_stacked, scale, output_slices, groups, joined)

    def add_lora_embedding(
        self: Any, y: Any, x: Any, lora_b_stacked: Any, add_inputs: bool = True, **kwargs: Any
    ) -> None:
        from torch.nn.functional import linear

        for slot, rows in self._token_groups:
            b = lora_b_stacked[slot]
            part = x if rows is None else x[rows]
            _add(y, linear(part.to(y.dtype), b[0] if b.dim() == 3 else b), rows, 1.0)

    def add_lora_logits(
        self: Any,
        y: Any,
        x: Any,
        lora_a_stacked: Any,
        lora_b_stacked: Any,
        scale: float,
        *,
        buffer: Any = None,
        **kwargs: Any,
    ) -> None:
        y, x = y.view(-1, y.shape[-1]), x.view(-1, x.shape[-1])
        stacks = (lora_a_stacked,), (lora_b_stacked,)
        apply_grouped(y, x, *stacks, scale, (y.shape[-1],), self._sampler_groups, joined)

    LoRAModelManager.activate_adapter = activate_adapter
    PunicaWrapperCPU.update_metadata = update_metadata
    PunicaWrapperCPU.add_lora_linear = add_lora_linear
    PunicaWrapperCPU.add_lora_embedding = add_lora_embedding
    PunicaWrapperCPU.add_lora_logits = add_lora_logits
    setattr(PunicaWrapperCPU, _MARK, True)


def _repair_rotary() -> None:
    from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

    if hasattr(RotaryEmbedding, _MARK):
        return
    inherited_forward = RotaryEmbedding.forward_cpu

    def forward_cpu(
        self: Any, positions: Any, query: Any, key: Any = None, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        if query.dim() != 3:
            result: tuple[Any, Any] = inherited_forward(
                self, positions, query, key, *args, **kwargs
            )
            return result
        flat_key = None if key is None else key.flatten(1)
        flat_query, flat_key = inherited_forward(
            self, positions, query.flatten(1), flat_key, *args, **kwargs
        )
        return flat_query.view_as(query), None if key is None else flat_key.view_as(key)

    RotaryEmbedding.forward_cpu = forward_cpu
    setattr(RotaryEmbedding, _MARK, True)
