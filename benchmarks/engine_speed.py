"""Speed of the inference engine with a LoRA adapter loaded, in tokens per second.

    python benchmarks/engine_speed.py --model smollm2 --dtypes bfloat16 float32 --threads 1 2

For each dtype and thread count it starts an engine, loads one random adapter on all linear
layers, and measures: seconds until the engine answers, prefill of a cold prompt, the same prompt
from the prefix cache, and decoding with 1, 8 and 16 requests in flight. Prints a Markdown table.
`--kind transformers` measures the fallback instead of vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import tempfile
import time
from pathlib import Path

from harness_adapters.config import EngineSettings
from harness_adapters.engine import Engine, Sampling
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.engine.start import start_engine

VOCABULARY = range(100, 20_000)
BATCHES = (1, 8, 16)


def write_random_adapter(model_dir: Path, target: Path, rank: int) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.bfloat16)
    shape = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    adapted = get_peft_model(model, shape)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.01)
    adapted.save_pretrained(target)


async def decode_speed(engine: Engine, prompt: list[int], batch: int, tokens: int) -> float:
    """Output tokens per second of `batch` equal requests whose prompt is in the cache."""
    sampling = Sampling(1.0, tokens)
    one = Sampling(1.0, 1)
    # The prompt's own cost is measured and taken off: what remains is decoding.
    start = time.perf_counter()
    await asyncio.gather(
        *(engine.generate(prompt, adapter="bench-v1", sampling=one) for _ in range(batch))
    )
    overhead = time.perf_counter() - start
    start = time.perf_counter()
    done = await asyncio.gather(
        *(engine.generate(prompt, adapter="bench-v1", sampling=sampling) for _ in range(batch))
    )
    seconds = time.perf_counter() - start - overhead
    return sum(len(one.output_ids) - 1 for one in done) / seconds


async def measure(
    kind: str, model_dir: Path, adapter: Path, dtype: str, threads: int, args: argparse.Namespace
) -> list[str]:
    settings = EngineSettings(kind=kind, threads=threads, max_lora_rank=args.rank)  # type: ignore[arg-type]
    start = time.perf_counter()
    engine = await start_engine(
        settings, model_dir, dtype=dtype, log_dir=Path(tempfile.mkdtemp()), progress=print
    )
    started = time.perf_counter() - start
    try:
        await engine.load_adapter("bench-v1", adapter)
        draw = random.Random(threads)
        warm = draw.choices(VOCABULARY, k=64)
        await engine.generate(warm, adapter="bench-v1", sampling=Sampling(1.0, 4))
        prompt = draw.choices(VOCABULARY, k=args.prompt)
        cold = await engine.generate(prompt, adapter="bench-v1", sampling=Sampling(1.0, 1))
        again = await engine.generate(prompt, adapter="bench-v1", sampling=Sampling(1.0, 1))
        speeds = [await decode_speed(engine, prompt, b, args.tokens) for b in BATCHES]
    finally:
        await engine.close()
    return [
        engine.kind,
        dtype,
        str(threads),
        f"{started:.0f}",
        f"{args.prompt / cold.seconds:.0f}",
        f"{again.seconds:.2f}",
        *(f"{speed:.0f}" for speed in speeds),
        f"{os.getloadavg()[0]:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--kind", default="vllm", choices=["vllm", "transformers"])
    parser.add_argument("--dtypes", nargs="+", default=["bfloat16", "float32"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--prompt", type=int, default=1200, help="tokens of the cold prompt")
    parser.add_argument("--tokens", type=int, default=32, help="output tokens per request")
    parser.add_argument("--rank", type=int, default=16)
    args = parser.parse_args()
    model_dir = resolve_model(args.model, progress=print)
    with tempfile.TemporaryDirectory() as scratch:
        adapter = Path(scratch) / "adapter"
        write_random_adapter(model_dir, adapter, args.rank)
        rows = [
            asyncio.run(measure(args.kind, model_dir, adapter, dtype, threads, args))
            for dtype in args.dtypes
            for threads in args.threads
        ]
    head = ["engine", "dtype", "threads", "start s", "prefill tok/s", "cached prompt s"]
    head += [f"decode x{b} tok/s" for b in BATCHES] + ["load average"]
    for row in (head, ["---"] * len(head), *rows):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
