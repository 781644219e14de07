"""The training curves: which metric goes where. Missing metrics leave their chart out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from harness_adapters.report.charts import Series, curves, stacks
from harness_adapters.report.data import RunData
from harness_adapters.report.svg import percent

Records = Sequence[dict[str, Any]]

RATIO = "sampling/importance_sampling_ratio"


def training_charts(run: RunData) -> dict[str, str]:
    """Name -> SVG, in the order to show."""
    steps, kept = run.steps, (run.best or {}).get("step")
    kept = float(kept) if isinstance(kept, int | float) else None
    charts: dict[str, str] = {}

    def add(name: str, title: str, series: list[Series], **options: Any) -> None:
        full = [s for s in series if s.points]
        if full:
            charts[name] = curves(title, full, kept=kept, **options)

    add(
        "pass-rate",
        "Pass rate",
        [
            _series("training", steps, "pass_rate", "base"),
            _series("validation", run.validations, "validation/pass_rate", marked=True),
        ],
        bounds=(0.0, 1.0),
        form=percent,
    )
    add(
        "reward",
        "Reward",
        [
            _series("training", steps, "reward", "base"),
            _series("validation", run.validations, "validation/reward", marked=True),
        ],
        bounds=(0.0, 1.0),
    )
    add(
        "tool-calls",
        "Tool calls per session",
        [_series("calls", steps, "calls")],
        bounds=(0.0, None),
    )
    layers = [
        Series(name, _points(steps, key), style)
        for name, key, style in (
            ("mixed", "groups/mixed", "treatment"),
            ("all right", "groups/all_correct", "base"),
            ("all wrong", "groups/all_wrong", "raw"),
        )
    ]
    if any(value for layer in layers for _, value in layer.points):
        charts["groups"] = stacks("Groups", layers)
    add("kl", "KL to the sampling policy", [_series("KL", steps, "kl")], bounds=(0.0, None))
    add("ratio", "Importance ratio, mean", [_series("mean", steps, f"{RATIO}/mean")])
    extremes = (_series("min", steps, f"{RATIO}/min"), _series("max", steps, f"{RATIO}/max"))
    logs = [Series(s.name, [(x, math.log10(max(v, 1e-6))) for x, v in s.points], "base")
            for s in extremes]  # fmt: skip
    add(
        "ratio-extremes",
        "Importance ratio, min to max (log)",
        logs,
        band=(logs[0], logs[1]) if all(s.points for s in logs) else None,
        form=lambda value: f"{10**value:.2g}",
        legend=False,
    )
    add("masked", "Share of tokens masked", [_series("masked", steps, "sampling/masked_ratio")],
        bounds=(0.0, None), form=share)  # fmt: skip
    add("entropy", "Entropy (nats)", [_series("entropy", steps, "entropy")], bounds=(0.0, None))
    add("grad-norm", "Gradient norm", [_series("norm", steps, "grad_norm")], bounds=(0.0, None))
    add("loss", "Loss", [_series("loss", steps, "loss")])
    add(
        "signal",
        "Mean |advantage|",
        [_series("signal", steps, "signal")],
        bounds=(0.0, None),
    )
    add(
        "length",
        "Tokens written per session",
        [_series("tokens", steps, "completions/mean_length")],
        bounds=(0.0, None),
    )
    add(
        "tokens",
        "Tokens per step",
        [
            _series("raw", steps, "tokens/raw", "raw"),
            _series("merged", steps, "tokens/merged", "base"),
            _series("distinct", steps, "tokens/distinct"),
        ],
        bounds=(0.0, None),
    )
    add(
        "seconds",
        "Seconds per step",
        [
            _series("sampling", steps, "sample_seconds", "base"),
            _series("learning", steps, "learn_seconds"),
            _series("loading", steps, "mount_seconds", "raw"),
        ],
        bounds=(0.0, None),
    )
    return charts


def warm_start_chart(run: RunData) -> str:
    """The supervised loss by step, or nothing where no warm start is known."""
    losses = run.warm.losses if run.warm is not None else []
    points = [(float(step), loss) for step, loss in enumerate(losses, 1) if math.isfinite(loss)]
    if not points:
        return ""
    return curves("Loss, nats per token", [Series("loss", points, "base")], bounds=(0.0, None))


def share(value: float) -> str:
    """A small share as a percentage: 0.2%."""
    return f"{value * 100:.3g}%"


def _series(
    name: str, records: Records, key: str, style: str = "treatment", *, marked: bool = False
) -> Series:
    return Series(name, _points(records, key), style, marked)


def _points(records: Records, key: str) -> list[tuple[float, float]]:
    """(step, value) of all records that have the key as a finite number."""
    return [
        (float(record["step"]), float(record[key]))
        for record in records
        if isinstance(record.get(key), int | float) and math.isfinite(record[key])
    ]
