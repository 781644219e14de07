"""One update on recorded sessions: seconds, memory and tokens of four ways to compute it.

    python benchmarks/recorded_sessions.py --harness opencode --out opencode.json
    python benchmarks/learner.py opencode.json [--model smollm2] [--json]

- `turns`: every turn as a row of its own: its whole prompt, its sampled tokens.
- `merged`: turns merged by exact prefix, row by row.
- `ours`: every distinct token once.
- `trl`: TRL's GRPOTrainer with a `rollout_func` that hands over the same sessions, one by one; of
  a session that forks it gets the last row. Left out where `trl` is not installed.

Each way runs alone in a fresh process, one thread. Rewards differ within a task, so every session
is trained. `cpu s` are processor seconds of forward, backward and the optimizer's step (they don't
count the waiting for a busy machine), `peak` is the growth of resident memory over the loaded
model. `--sample N` computes only N rows of `turns` and `merged`, evenly spread over lengths and the
longest among them, and multiplies by tokens: rows are independent, so seconds add up. `--growth`
runs `ours` on the first 1/8, 1/4, 1/2 and all of the sessions; `--plot FILE` draws that.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import recorded_sessions

from harness_adapters.records import Turn

WAYS = ("turns", "merged", "ours", "trl")
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


def memory(field: str) -> int:
    """Bytes of this process: `VmRSS` now, `VmHWM` at its highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {field}")


def measured(work: Callable[[], dict[str, float]]) -> dict[str, float]:
    """What `work` gives, with its seconds and its peak of memory."""
    before, start, clock = memory("VmRSS"), os.times(), time.perf_counter()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    found = work()
    end = os.times()
    return found | {
        "cpu_seconds": end.user + end.system - start.user - start.system,
        "wall_seconds": time.perf_counter() - clock,
        "peak_bytes": float(memory("VmHWM") - before),
    }


def sampled(rows: list[Any], count: int) -> list[Any]:
    """`count` rows, evenly spread over lengths, the longest among them."""
    if not count or count >= len(rows):
        return rows
    ordered = sorted(rows, key=lambda row: len(row.ids), reverse=True)
    return [ordered[len(ordered) * i // count] for i in range(count)]


def update(way: str, sessions: Sequence[list[Turn]], options: argparse.Namespace) -> dict[str, Any]:
    """One optimizer step by rows (`turns`, `merged`) or by trie (`ours`)."""
    import torch

    from harness_adapters.learner.forward import Terms
    from harness_adapters.learner.masters import MasterWeights
    from harness_adapters.learner.plain_forward import PlainForward
    from harness_adapters.learner.rows import turns_to_rows
    from harness_adapters.learner.shared_forward import choose_forward

    model = adapted_model(options.model, options.dtype)
    masters = MasterWeights((n, p) for n, p in model.named_parameters() if p.requires_grad)
    optimizer = torch.optim.AdamW(masters.parameters, lr=1e-4)
    parts = [[turn] for turns in sessions for turn in turns] if way == "turns" else sessions
    owner = [i for i, turns in enumerate(sessions) for _ in (turns if way == "turns" else [0])]
    everything = [
        row for number, turns in zip(owner, parts, strict=True)
        for row in turns_to_rows(turns, number)
    ]  # fmt: skip
    rows = everything if way == "ours" else sampled(everything, options.sample)
    note = ""
    if way == "ours":
        forward, note = choose_forward(
            model, token_budget=options.token_budget, checkpointing=options.checkpointing
        )
    else:
        if options.checkpointing:
            base = model.get_base_model()
            base.gradient_checkpointing_enable({"use_reentrant": False})
        forward = PlainForward(model)
    total = sum(sum(row.trained) for row in everything)

    def loss(terms: Terms, logprobs: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        advantage = torch.sin(terms.rollout_M.float() + 1)
        ratio = (logprobs - terms.old_logprobs_M).clamp(-5, 5).exp().detach()
        return -(ratio.clamp(max=4.0) * advantage * logprobs).sum() / total

    def work() -> dict[str, float]:
        counts = forward.run(rows, loss)
        optimizer.step()
        masters.push()
        return {
            "forwarded": counts.forwarded,
            "distinct": counts.distinct,
            "trained": counts.trained,
            "trunk": counts.trunk,
        }

    found: dict[str, Any] = measured(work)
    whole = sum(len(row.ids) for row in everything)
    if len(rows) < len(everything):
        factor = whole / found["forwarded"]
        for key in ("cpu_seconds", "wall_seconds"):
            found[key] *= factor
        found |= {"forwarded": whole, "trained": total, "rows_computed": len(rows)}
    return found | {"rows": len(everything), "note": note}


def update_by_trl(
    sessions: Sequence[list[Turn]], options: argparse.Namespace, folder: str
) -> dict[str, Any]:
    """TRL's own training loop, one optimizer step."""
    import trl
    from datasets import Dataset
    from datasets.table import InMemoryTable
    from transformers import AutoTokenizer

    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.learner.rows import turns_to_rows

    model = adapted_model(options.model, options.dtype)
    rows = [turns_to_rows(turns)[-1] for turns in sessions]
    order = iter(rows)

    def hand_over(prompts: list[Any], _: Any) -> dict[str, Any]:
        chosen = [next(order) for _ in prompts]
        heads = [row.first_trained for row in chosen]
        pairs = list(zip(chosen, heads, strict=True))
        return {
            "prompt_ids": [row.ids[:head] for row, head in pairs],
            "completion_ids": [row.ids[head:] for row, head in pairs],
            "logprobs": [row.logprobs[head:] for row, head in pairs],
            "env_mask": [[int(t) for t in row.trained[head:]] for row, head in pairs],
        }

    rng = random.Random(0)
    arguments = trl.GRPOConfig(
        output_dir=folder, report_to=[], use_cpu=True, bf16=False, max_steps=1, save_strategy="no",
        per_device_train_batch_size=1, gradient_accumulation_steps=len(rows),
        num_generations=options.attempts, loss_type="cispo", epsilon_high=4.0, beta=0.0,
        gradient_checkpointing=options.checkpointing, max_completion_length=8192,
        learning_rate=1e-4, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: [rng.random() for _ in completions],
        args=arguments,
        train_dataset=Dataset(
            InMemoryTable.from_pydict(
                {"prompt": [f"task {i}" for i in range(len(rows) // options.attempts)]}
            ),
            fingerprint="sessions",
        ),
        processing_class=AutoTokenizer.from_pretrained(
            resolve_model("smollm2", progress=lambda _: None)
        ),
        rollout_func=hand_over,
    )

    def work() -> dict[str, float]:
        trainer.train()
        return {"forwarded": sum(len(row.ids) for row in rows)}

    trained = sum(sum(row.trained) for row in rows)
    return measured(work) | {"trained": trained, "rows": len(rows), "note": ""}


def worker(options: argparse.Namespace) -> None:
    """Run one way and print what was found, as JSON in the last line."""
    import tempfile

    import torch

    torch.set_num_threads(1)
    _, sessions = recorded_sessions.load(options.sessions[0])
    sessions = sessions[: options.rollouts or None]
    if options.worker == "trl":
        with tempfile.TemporaryDirectory() as folder:
            found = update_by_trl(sessions, options, folder)
    else:
        found = update(options.worker, sessions, options)
    print(json.dumps(found))


def in_a_process(way: str, file: Path, rollouts: int, options: argparse.Namespace) -> Any:
    """The worker's result; None where the way is not installed."""
    flags = ["--worker", way, "--rollouts", rollouts, "--model", options.model]
    flags += ["--dtype", options.dtype, "--token-budget", options.token_budget]
    flags += ["--sample", options.sample, "--attempts", options.attempts]
    flags += ["--checkpointing"] if options.checkpointing else []
    done = subprocess.run(
        [sys.executable, __file__, str(file), *map(str, flags)],
        capture_output=True,
        text=True,
        check=False,
    )
    if way == "trl" and "No module named 'trl'" in done.stderr:
        return None
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def table(label: str, found: dict[str, Any]) -> list[str]:
    """Markdown rows, ratios against `ours` (or the last way, without it)."""
    ours = found.get("ours") or list(found.values())[-1]
    lines = []
    for way, values in found.items():
        times = values["cpu_seconds"] / ours["cpu_seconds"]
        some = f" ({values['rows_computed']} rows)" if "rows_computed" in values else ""
        lines.append(
            f"| {label} | {way}{some} | {values['rows']} | {values['forwarded']:,.0f} "
            f"| {values['trained']:,.0f} | {values['cpu_seconds']:.1f} | {times:.1f} "
            f"| {values['peak_bytes'] / 2**20:,.0f} |"
        )
    return lines


def growth(file: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """`ours` on growing parts of the sessions."""
    _, sessions = recorded_sessions.load(file)
    whole = options.rollouts or len(sessions)
    counts = sorted({max(2, whole // part) for part in (8, 4, 2, 1)})
    return [{"rollouts": n} | in_a_process("ours", file, n, options) for n in counts]


def plot(label: str, points: list[dict[str, Any]], file: Path) -> None:
    """Seconds against distinct tokens, as a drawing."""
    from harness_adapters.report.charts import Series, curves

    rising = [(p["distinct"], p["cpu_seconds"]) for p in points]
    title = f"CPU seconds of one update by distinct tokens, {label}"
    drawn = curves(title, [Series("ours", rising, marked=True)], bounds=(0.0, None), width=480)
    file.write_text(drawn)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--model", default="smollm2", help="tiny-lfm2, or as --model elsewhere")
    parser.add_argument("--dtype", default="float32", choices=["bfloat16", "float32"])
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--rollouts", type=int, default=0, help="only the first so many sessions")
    parser.add_argument("--attempts", type=int, default=4, help="sessions of a task, for trl")
    parser.add_argument("--token-budget", type=int, default=1024)
    parser.add_argument("--checkpointing", action="store_true", help="in every way")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options)
        return
    everything: dict[str, Any] = {}
    if not options.json and not options.growth:
        print("| sessions | way | rows | tokens forwarded | trained | cpu s | x ours | peak MiB |")
        print("|---|---|---|---|---|---|---|---|")
    for file in options.sessions:
        label, _ = recorded_sessions.load(file)
        if options.growth:
            everything[label] = growth(file, options)
            for point in [] if options.json else everything[label]:
                print(
                    f"{label}: {point['rollouts']} rollouts, {point['distinct']:,} distinct tokens,"
                    f" {point['cpu_seconds']:.2f} s, peak {point['peak_bytes'] / 2**20:,.0f} MiB"
                )
            if options.plot:
                plot(label, everything[label], options.plot)
            continue
        ways = options.way or WAYS
        found = {way: in_a_process(way, file, options.rollouts, options) for way in ways}
        everything[label] = {way: values for way, values in found.items() if values}
        if not options.json:
            print("\n".join(table(label, everything[label])), flush=True)
    if options.json:
        print(json.dumps({"model": options.model, "dtype": options.dtype, "found": everything}))


if __name__ == "__main__":
    main()
