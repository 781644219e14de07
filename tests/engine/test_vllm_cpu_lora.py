from __future__ import annotations

import random

import pytest
import torch

from harness_adapters.engine.vllm_cpu_lora import apply_grouped, group_rows, join, register


def test_rows_are_grouped_by_adapter() -> None:
    assert group_rows([-1, -1]) == []
    assert group_rows([]) == []
    assert group_rows([2, 2]) == [(2, None)]
    (first, rows_first), (third, rows_third) = group_rows([0, 0, -1, 3, -1, 3])
    assert (first, rows_first) == (0, slice(0, 2))
    assert third == 3
    assert rows_third.tolist() == [3, 5]


def test_grouped_products_equal_row_by_row() -> None:
    torch.manual_seed(0)
    draw = random.Random(0)
    slots, rank, inputs, widths = 3, 4, 6, (5, 7)
    stacks_a = tuple(torch.randn(slots, 1, rank, inputs) for _ in widths)
    stacks_b = tuple(torch.randn(slots, 1, width, rank) for width in widths)
    joined: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}
    for _ in range(20):
        indices = draw.choices([-1, 0, 1, 2], k=draw.randint(1, 9))
        x = torch.randn(len(indices), inputs)
        y = torch.randn(len(indices), sum(widths))
        expected = y.clone()
        for row, slot in enumerate(indices):
            if slot >= 0:
                delta = [
                    b[slot, 0] @ (a[slot, 0] @ x[row])
                    for a, b in zip(stacks_a, stacks_b, strict=True)
                ]
                expected[row] += 0.5 * torch.cat(delta)
        apply_grouped(y, x, stacks_a, stacks_b, 0.5, widths, group_rows(indices), joined)
        torch.testing.assert_close(y, expected)
    assert set(joined) == {(stacks_a[0].data_ptr(), slot) for slot in range(slots)}


def test_an_output_that_vllm_padded_keeps_its_place() -> None:
    stacks_a = torch.randn(1, 1, 2, 6), torch.randn(1, 1, 2, 6)
    stacks_b = torch.randn(1, 1, 5, 2), torch.randn(1, 1, 3, 2)
    a, b = join(stacks_a, stacks_b, 0, (4, 4))
    x = torch.randn(6)
    first, second = (
        stack_b[0, 0] @ stack_a[0, 0] @ x
        for stack_a, stack_b in zip(stacks_a, stacks_b, strict=True)
    )
    torch.testing.assert_close(b @ (a @ x), torch.cat([first[:4], second, torch.zeros(1)]))


def test_register_repairs_vllm_once() -> None:
    """On the installed CPU build: the classes carry our methods, and a second call adds nothing."""
    from vllm.lora.punica_wrapper.punica_cpu import PunicaWrapperCPU
    from vllm.model_executor.layers.rotary_embedding.base import RotaryEmbedding

    register()
    repaired = (PunicaWrapperCPU.update_metadata, RotaryEmbedding.forward_cpu)
    register()
    assert (PunicaWrapperCPU.update_metadata, RotaryEmbedding.forward_cpu) == repaired
    assert PunicaWrapperCPU.add_lora_linear.__module__ == "harness_adapters.engine.vllm_cpu_lora"


def test_nothing_is_patched_off_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm.platforms

    from harness_adapters.engine import vllm_cpu_lora

    class Gpu:
        @staticmethod
        def is_cpu() -> bool:
            return False

    monkeypatch.setattr(vllm.platforms, "current_platform", Gpu)
    monkeypatch.setattr(vllm_cpu_lora, "_repair_lora", lambda: 1 / 0)
    register()
