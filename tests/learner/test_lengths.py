"""A step of real size: the longest stock prompt, many sessions of many turns."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch

from harness_adapters.learner.rows import Row, turns_to_rows
from harness_adapters.learner.shared_forward import SharedForward
from harness_adapters.records import Turn

from .builders import VOCABULARY, tiny_model, turn
from .test_shared_forward import gradients, weighted, with_lora

PROMPT, ROLLOUTS, TURNS = 13_000, 64, 12


def sessions() -> list[Row]:
    """Every third session has an echoed answer rewritten half way, so that its history forks."""
    rng = random.Random(5)

    def draw(count: int) -> list[int]:
        return [rng.randrange(VOCABULARY) for _ in range(count)]

    system = draw(PROMPT)
    tasks = [[*system, 1 + number, *draw(30)] for number in range(ROLLOUTS // 8)]
    rows: list[Row] = []
    for number in range(ROLLOUTS):
        prompt, turns = tasks[number % len(tasks)], list[Turn]()
        for index in range(TURNS):
            output = draw(16)
            turns.append(turn(prompt, output, index=index))
            echoed = draw(16) if number % 3 == 0 and index == TURNS // 2 else output
            prompt = prompt + echoed + draw(16)
        rows += turns_to_rows(turns, rollout=number)
    return rows


def memory(field: str) -> int:
    """Bytes: `VmRSS` now, `VmHWM` at its highest."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


@pytest.mark.timeout(1800)
@pytest.mark.heavy  # a minute or two of one core, more of a busy one
@pytest.mark.parametrize("family", ["llama", "lfm3_like"])
def test_one_update_in_bounded_memory(family: str) -> None:
    rows = sessions()
    assert len(rows) > ROLLOUTS  # some fork
    model = with_lora(tiny_model(family, max_position_embeddings=32_768))
    forward = SharedForward(model, token_budget=2048, checkpointing=True)
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    counts = forward.run(rows, weighted(rows))
    peak = memory("VmHWM") - before
    assert counts.trunk == PROMPT
    assert counts.distinct > 35_000
    assert counts.forwarded <= 1.05 * counts.distinct
    assert counts.merged > 20 * counts.distinct
    # A mask of distinct x distinct numbers alone would be over 4 GiB.
    assert peak < 1.5 * 2**30
    assert all(torch.isfinite(gradient).all() for gradient in gradients(model).values())
