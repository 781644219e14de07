"""Is what was captured what the model says? Replays recorded turns through transformers + PEFT.

    python benchmarks/capture_exactness.py RUN [--sessions 20] [--dtype float32]

takes turns of a run's training sessions (sampled at temperature 1 by the base and by the adapter
versions that the run still holds), scores the sampled tokens again with plain forwards of the same
weights, in the run's own number format unless `--dtype` says another, and prints the mean and
largest difference to the log-probabilities that the engine gave while sampling, and the mean
importance ratio.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from harness_adapters import config
from harness_adapters.engine import BASE
from harness_adapters.engine.canary import TrainerLogprobs, reference_logprobs
from harness_adapters.records import Phase, Turn
from harness_adapters.store import Store


def main() -> None:
    """Print one line for each adapter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--sessions", type=int, default=20, help="about so many sessions of each adapter"
    )
    parser.add_argument("--dtype", choices=["bfloat16", "float32"])
    options = parser.parse_args()
    store = Store.existing(options.run)
    dtype = options.dtype or config.load(options.run / "config.toml").model.dtype
    score = reference_logprobs(Path(store.fact("model_dir")), dtype)
    print(f"{'adapter':12} {'tokens':>7} {'mean |d|':>9} {'max |d|':>9} {'ratio':>8}")
    by_adapter: dict[str, list[Turn]] = {}
    for rollout in store.rollouts(phase=Phase.TRAIN):
        held = rollout.adapter == BASE or (options.run / "adapters" / rollout.adapter).is_dir()
        if held and rollout.temperature == 1.0:
            by_adapter.setdefault(rollout.adapter, []).extend(rollout.turns)
    for turns in by_adapter.values():
        print(line(turns[: 2 * options.sessions], options.run, score))


def line(turns: list[Turn], run: Path, score: TrainerLogprobs) -> str:
    """The figures of one adapter's turns."""
    name = turns[0].adapter
    path = None if name == BASE else str(run / "adapters" / name)
    pairs = [(turn.prompt_ids, turn.output_ids) for turn in turns]
    again = score(pairs, path)
    gaps = [
        new - old
        for turn, row in zip(turns, again, strict=True)
        for old, new in zip(turn.logprobs, row, strict=True)
    ]
    mean = sum(map(abs, gaps)) / len(gaps)
    ratio = sum(map(math.exp, gaps)) / len(gaps)
    worst = max(map(abs, gaps))
    return f"{name:12} {len(gaps):7d} {mean:9.4f} {worst:9.4f} {ratio:8.4f}"


if __name__ == "__main__":
    main()
