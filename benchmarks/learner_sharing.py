"""What sharing prefixes saves: one training step as per-turn rows, merged rows, shared trunk.

    python benchmarks/learner_sharing.py [--model DIR] [--threads 1] [--dtype bfloat16] [--skip WAY]

Made-up sessions of a coding agent: a system prompt with tool schemas that all share, tasks, several
attempts per task, turns that append a sampled call and its output. Without `--model` the network is
random, of SmolLM2-135M's shape. Each way computes the same loss terms and the same gradients of a
rank-16 adapter; the last column is the relative difference of its gradient to the first way run.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

import torch

from harness_adapters.config import LoraSettings
from harness_adapters.learner.forward import Forward, Terms
from harness_adapters.learner.masters import MasterWeights
from harness_adapters.learner.model import add_lora, load_base
from harness_adapters.learner.plain_forward import PlainForward
from harness_adapters.learner.rows import Row, pair_to_row, turns_to_rows
from harness_adapters.learner.shared_forward import choose_forward
from harness_adapters.records import Turn


def sessions(options: argparse.Namespace, vocabulary: int) -> list[list[Turn]]:
    rng = random.Random(0)

    def draw(count: int) -> list[int]:
        return [rng.randrange(vocabulary) for _ in range(count)]

    system = draw(options.system)
    result = []
    for _ in range(options.tasks):
        task = system + draw(60)
        for _ in range(options.attempts):
            prompt, turns = task, []
            for index in range(options.turns):
                output = draw(40)
                turns.append(
                    Turn(index, prompt, output, [-10.0] * 40, "base", 0, "stop", "", [], [], 0, 0)
                )
                prompt = prompt + output + draw(50)
            result.append(turns)
    return result


def random_model(dtype: str) -> torch.nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192,
        tie_word_embeddings=True,
    )  # fmt: skip
    return LlamaForCausalLM(config).to(getattr(torch, dtype)).train()


def step(forward: Forward, rows: list[Row], masters: MasterWeights) -> tuple[torch.Tensor, str]:
    total = sum(sum(row.trained) for row in rows)

    def loss(terms: Terms, logprobs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        advantage = torch.sin(terms.rollout_M.float() + 1)
        return -(advantage * logprobs).sum() / total

    masters.zero_grad()
    wall, before = time.perf_counter(), os.times()
    counts = forward.run(rows, loss)
    after = os.times()
    cpu = after.user + after.system - before.user - before.system
    gradient = torch.cat([p.grad.flatten() for p in masters.parameters if p.grad is not None])
    wall = time.perf_counter() - wall
    return gradient, f"{counts.forwarded:>9,} {counts.trained:>8,} {cpu:>7.1f} {wall:>7.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--system", type=int, default=1200, help="tokens of system prompt and tools"
    )
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--skip", action="append", default=[], choices=["turns", "merged"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    base = (
        load_base(options.model, dtype=options.dtype)
        if options.model
        else random_model(options.dtype)
    )
    model = add_lora(base, LoraSettings(), seed=0)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.02)
    masters = MasterWeights((n, p) for n, p in model.named_parameters() if p.requires_grad)
    captured = sessions(options, model.config.vocab_size)
    merged = [row for i, turns in enumerate(captured) for row in turns_to_rows(turns, i)]
    per_turn = [
        pair_to_row(turn.prompt_ids, turn.output_ids, i)
        for i, turns in enumerate(captured)
        for turn in turns
    ]
    plain = PlainForward(model)
    shared, note = choose_forward(model)
    ways = [("turns", "rows by turn", per_turn), ("merged", "merged rows", merged)]
    runs = [(name, plain, rows) for key, name, rows in ways if key not in options.skip]
    runs.append((note or "shared trunk", shared, merged))
    print(
        f"{len(captured)} sessions of {options.turns} turns, {options.dtype},"
        f" {options.threads} thread(s)"
    )
    print(f"{'way':<14}{'tokens':>9} {'trained':>8} {'cpu s':>7} {'wall s':>7} {'gradient':>9}")
    reference = None
    for name, forward, rows in runs:
        gradient, text = step(forward, rows, masters)
        reference = gradient if reference is None else reference
        apart = float((gradient - reference).norm() / reference.norm())
        print(f"{name:<14}{text} {apart:>9.1e}", flush=True)


if __name__ == "__main__":
    main()
