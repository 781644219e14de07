import io
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from harness_adapters.report.page import write_report
from harness_adapters.report.png import SCALE, png
from harness_adapters.report.svg import drawing, line, rect, standalone, text


def pixels(svg: str) -> np.ndarray:
    return matplotlib.image.imread(io.BytesIO(png(svg)), format="png")


def test_a_drawing_has_its_shapes_colours_and_size() -> None:
    svg = drawing(200, 100, "x", [
        rect(10, 10, 50, 30, "fill-treatment"),
        rect(100, 10, 50, 30, "heat gain4"),
        line(0, 80, 200, 80, "whisker"),
        text(10, 70, "$a_b$ & <c>", style="label"),
    ])  # fmt: skip
    image = pixels(standalone(svg))
    margin = 20
    assert image.shape[:2] == ((100 + 2 * margin) * SCALE, (200 + 2 * margin) * SCALE)

    def at(x: float, y: float) -> tuple[int, ...]:
        colour = image[int((y + margin) * SCALE), int((x + margin) * SCALE)]
        return tuple(round(255 * part) for part in colour[:3])

    assert at(30, 20) == (0x2A, 0x5B, 0xD0)
    assert at(120, 20) == pytest.approx([255 - 0.56 * (255 - c) for c in (0x2A, 0x5B, 0xD0)], abs=2)
    assert at(180, 60) == (255, 255, 255)
    assert sum(at(100, 80)) < 3 * 128
    words = image[(55 + margin) * SCALE : (75 + margin) * SCALE, margin * SCALE : 120 * SCALE]
    assert (words < 0.5).any()


def test_every_plot_of_a_report_is_there_in_both_formats(finished_run: Path) -> None:
    write_report(finished_run, pngs=True)
    plots = finished_run / "report" / "plots"
    names = {file.stem for file in plots.glob("*.svg")}
    assert {"result", "pairs", "families", "reward", "groups", "calls"} <= names
    assert names == {file.stem for file in plots.glob("*.png")}
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in plots.glob("*.png"))
    write_report(finished_run)
    assert not list(plots.glob("*.png"))  # none that is older than the rest
