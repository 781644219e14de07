"""One figure of several runs over their training steps, as an SVG file.

    python benchmarks/run_curves.py runs/a runs/b --key validation/pass_rate --out curves.svg

Keys are those of `metrics.jsonl`; steps that lack one are left out. Up to three runs, named by
their directories.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from harness_adapters.report.charts import Series, curves
from harness_adapters.report.svg import number, percent, standalone
from harness_adapters.store import Store

STYLES = ("treatment", "other", "base")


def points(root: Path, key: str) -> list[tuple[float, float]]:
    """(Steps done, value) of each line that has the key."""
    store = Store.existing(root)
    try:
        lines = store.metrics()
    finally:
        store.close()
    sampled = 0 if key.startswith("validation/") else 1  # a step's own figures count from 1
    return [(line["step"] + sampled, line[key]) for line in lines if key in line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--key", default="validation/pass_rate", help="which figure")
    parser.add_argument("--title", help="above the curves; the key where not given")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.svg")
    options = parser.parse_args()
    if len(options.runs) > len(STYLES):
        parser.error(f"at most {len(STYLES)} runs")
    series = [
        Series(run.name, points(run, options.key), style, marked=True)
        for run, style in zip(options.runs, STYLES, strict=False)
    ]
    if not any(one.points for one in series):
        parser.error(f"no line of metrics.jsonl has the key {options.key!r}")
    share = options.key.endswith("pass_rate")
    drawing = curves(
        options.title or options.key,
        series,
        bounds=(0.0, 1.0) if share else (None, None),
        form=percent if share else number,
        legend=False,
        width=560,
    )
    options.out.write_text(
        standalone(drawing, [(one.name, f"fill-{one.style}") for one in series]) + "\n"
    )


if __name__ == "__main__":
    main()
