"""The four ways to compute one update that `learner.py` compares, each run in a process of its own.

    python benchmarks/learner_ways.py '{"way": "ours", "model": "tiny-lfm2", …}'

prints one JSON object in its last line: what `learner.Job` asks for.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import learner_sharing
import recorded_sessions

from harness_adapters.lifeline import end_with
from harness_adapters.records import Turn

RANK = 8


def random_lfm2(dtype: str) -> Any:
    """A random LFM2 that is small enough to measure every way on, with SmolLM2's vocabulary."""
    import torch
    from transformers import Lfm2Config, Lfm2ForCausalLM

    torch.manual_seed(0)
    config = Lfm2Config(
        vocab_size=49_152, hidden_size=256, intermediate_size=768, num_hidden_layers=8,
        num_attention_heads=8, num_key_value_heads=2, block_auto_adjust_ff_dim=False,
        layer_types=["conv", "conv", "full_attention", "conv"] * 2, tie_word_embeddings=True,
        max_position_embeddings=32_768,
    )  # fmt: skip
    return Lfm2ForCausalLM(config).to(getattr(torch, dtype)).train()


def adapted_model(name: str, dtype: str) -> Any:
    """The base with a rank-8 adapter that already changes something."""
    import torch

    from harness_adapters.config import LoraSettings
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.learner.model import add_lora, load_base

    if name == "tiny-lfm2":
        base = random_lfm2(dtype)
    else:
        base = load_base(resolve_model(name, progress=lambda _: None), dtype=dtype, device="cpu")
    base.config.use_cache = False
    model = add_lora(base, LoraSettings(rank=RANK, targets="auto"), seed=0)
    for parameter_name, parameter in model.named_parameters():
        if "lora_B" in parameter_name:
            torch.nn.init.normal_(parameter, std=0.02)
    return model


def load_sessions(job: dict[str, Any]) -> list[list[Turn]]:
    """Recorded ones, or made up: a prompt of `prompt` tokens, tasks of `attempts` sessions."""
    count = job["rollouts"]
    if job["file"]:
        return recorded_sessions.load(Path(job["file"]))[1][: count or None]
    shape = Namespace(
        system=job["prompt"], tasks=-(-count // job["attempts"]), attempts=job["attempts"],
        turns=job["turns"],
    )  # fmt: skip
    return learner_sharing.sessions(shape, vocabulary=49_152)[:count]


def memory(field: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}")


@contextmanager
def measured(into: dict[str, Any]) -> Iterator[None]:
    """Adds processor seconds, seconds on the clock, and the growth of resident memory."""
    before, start, clock = memory("VmRSS"), os.times(), time.perf_counter()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    yield
    end = os.times()
    into["cpu_seconds"] = end.user + end.system - start.user - start.system
    into["wall_seconds"] = time.perf_counter() - clock
    into["peak_bytes"] = memory("VmHWM") - before


def sampled(rows: list[Any], count: int) -> list[Any]:
    """`count` rows, evenly spread over lengths, the longest among them; 0 is all."""
    if not count or count >= len(rows):
        return rows
    ordered = sorted(rows, key=lambda row: len(row.ids), reverse=True)
    return [ordered[len(ordered) * i // count] for i in range(count)]


def scaled(found: dict[str, Any], part: int, whole: int) -> dict[str, Any]:
    """Seconds of `part` tokens in rows, as of `whole`: rows are independent, so they add up."""
    factor = whole / part
    return found | {k: found[k] * factor for k in ("cpu_seconds", "wall_seconds")}


def update(job: dict[str, Any], sessions: Sequence[list[Turn]]) -> dict[str, Any]:
    """One optimizer step by rows (`turns`, `merged`) or by trie (`ours`)."""
    import torch

    from harness_adapters.learner.forward import Forward, Terms
    from harness_adapters.learner.masters import MasterWeights
    from harness_adapters.learner.plain_forward import PlainForward
    from harness_adapters.learner.rows import turns_to_rows
    from harness_adapters.learner.shared_forward import choose_forward

    model = adapted_model(job["model"], job["dtype"])
    masters = MasterWeights((n, p) for n, p in model.named_parameters() if p.requires_grad)
    optimizer = torch.optim.AdamW(masters.parameters, lr=1e-4)
    everything = []
    for number, turns in enumerate(sessions):
        for part in [[turn] for turn in turns] if job["way"] == "turns" else [turns]:
            everything += turns_to_rows(part, number)
    rows = everything if job["way"] == "ours" else sampled(everything, job["sample"])
    forward: Forward
    note = ""
    if job["way"] == "ours":
        forward, note = choose_forward(
            model, token_budget=job["token_budget"], checkpointing=job["checkpointing"]
        )
    else:
        if job["checkpointing"]:
            model.get_base_model().gradient_checkpointing_enable({"use_reentrant": False})
        forward = PlainForward(model)
    total = sum(sum(row.trained) for row in everything)

    def loss(terms: Terms, logprobs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        advantage = torch.sin(terms.rollout_M.float() + 1)
        ratio = (logprobs - terms.old_logprobs_M).clamp(-5, 5).exp().detach()
        return -(ratio.clamp(max=4.0) * advantage * logprobs).sum() / total

    found: dict[str, Any] = {"rows": len(everything), "trained": total, "note": note}
    with measured(found):
        counts = forward.run(rows, loss)
        optimizer.step()
        masters.push()
    if job["way"] == "ours":
        return found | {
            "forwarded": counts.forwarded,
            "distinct": counts.distinct,
            "trunk": counts.trunk,
        }
    whole = sum(len(row.ids) for row in everything)
    found |= {"forwarded": whole, "computed": len(rows)}
    return scaled(found, sum(len(row.ids) for row in rows), whole)


def update_by_trl(
    job: dict[str, Any], sessions: Sequence[list[Turn]], folder: str
) -> dict[str, Any]:
    """TRL's own training loop, one optimizer step; with `sample` on the first tasks only."""
    from trl import import_utils

    # TRL loads any vLLM that it finds, which has no part in this.
    import_utils.is_vllm_available = lambda *_, **__: False
    import trl
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from transformers import AutoTokenizer, TrainerCallback

    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.learner.rows import turns_to_rows

    everything = [turns_to_rows(turns)[-1] for turns in sessions]
    attempts = job["attempts"]
    tasks = -(-(job["sample"] or len(everything)) // attempts)
    rows = everything[: tasks * attempts]
    if len(rows) % attempts:
        raise SystemExit(f"trl needs whole tasks: {attempts} sessions each, found {len(rows)}")
    order = iter(rows)

    def hand_over(prompts: list[Any], _: Any) -> dict[str, Any]:
        chosen = [next(order) for _ in prompts]
        pairs = [(row, row.first_trained) for row in chosen]
        return {
            "prompt_ids": [row.ids[:head] for row, head in pairs],
            "completion_ids": [row.ids[head:] for row, head in pairs],
            "logprobs": [row.logprobs[head:] for row, head in pairs],
            "env_mask": [[int(t) for t in row.trained[head:]] for row, head in pairs],
        }

    whole = sum(len(row.ids) for row in everything)
    found: dict[str, Any] = {
        "rows": len(everything), "forwarded": whole, "computed": len(rows), "note": "",
        "trained": sum(sum(row.trained) for row in everything),
    }  # fmt: skip
    watch = measured(found)

    class Watch(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
        """The step alone, without what a trainer prepares once."""

        def on_step_begin(self, *_: Any, **__: Any) -> None:
            watch.__enter__()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            watch.__exit__(None, None, None)

    rng = random.Random(0)
    arguments = trl.GRPOConfig(
        output_dir=folder, report_to=[], use_cpu=True, bf16=False, max_steps=1, save_strategy="no",
        per_device_train_batch_size=1, gradient_accumulation_steps=len(rows),
        num_generations=attempts, loss_type="cispo", epsilon_high=4.0, beta=0.0,
        gradient_checkpointing=job["checkpointing"], max_completion_length=8192,
        learning_rate=1e-4, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=adapted_model(job["model"], job["dtype"]),
        reward_funcs=lambda completions, **_: [rng.random() for _ in completions],
        args=arguments,
        train_dataset=Dataset(
            # With a fingerprint of ours nothing is pickled to make one.
            InMemoryTable.from_pydict({"prompt": [f"task {i}" for i in range(tasks)]}),
            fingerprint="sessions",
        ),
        processing_class=AutoTokenizer.from_pretrained(
            resolve_model("smollm2", progress=lambda _: None)
        ),
        rollout_func=hand_over,
        callbacks=[Watch()],
    )
    trainer.train()
    return scaled(found, sum(len(row.ids) for row in rows), whole)


def main() -> None:
    """One job, from the command line to standard output."""
    import torch

    job = json.loads(sys.argv[1])
    end_with(job["parent"])
    torch.set_num_threads(1)
    sessions = load_sessions(job)
    if job["way"] == "trl":
        with tempfile.TemporaryDirectory() as folder:
            found = update_by_trl(job, sessions, folder)
    else:
        found = update(job, sessions)
    print()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
