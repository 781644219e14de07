import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.report.charts import Outcome, Series, Square, curves, pair_grid, stacks
from harness_adapters.report.svg import Scale, number, standalone, ticks

FINITE = st.floats(-1e9, 1e9)


@given(FINITE, FINITE)
def test_ticks_cover_the_data_and_are_few(one: float, two: float) -> None:
    low, high = min(one, two), max(one, two)
    marks = ticks(low, high)
    tolerance = 1e-6 * max(1.0, abs(low), abs(high))
    assert marks[0] <= low + tolerance
    assert marks[-1] >= high - tolerance
    assert 2 <= len(marks) <= 7
    assert marks == sorted(set(marks))


def test_numbers_are_short() -> None:
    values = (0, 0.25, 1.005, 950, 1000, 1500, 78_000)
    assert [number(v) for v in values] == ["0", "0.25", "1.005", "950", "1k", "1.5k", "78k"]


def test_scale_of_an_empty_range_stays_inside() -> None:
    assert Scale(3, 3, 10, 20)(3) == 10


@given(st.lists(st.tuples(st.integers(0, 50), FINITE), min_size=1, max_size=20))
def test_curves_stay_inside_their_frame(points: list[tuple[int, float]]) -> None:
    svg = curves("t", [Series("a", sorted(points)), Series("b", sorted(points), marked=True)])
    root = ElementTree.fromstring(svg)
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert 40 <= float(circle.attrib["cx"]) <= 340
        assert 30 <= float(circle.attrib["cy"]) <= 168


def test_stacks_put_layers_on_each_other() -> None:
    layers = [Series("a", [(0, 2.0)]), Series("b", [(0, 3.0)], "base")]
    root = ElementTree.fromstring(stacks("t", layers))
    bars = {
        r.attrib["class"]: (float(r.attrib["y"]), float(r.attrib["height"]))
        for r in root.iter("{http://www.w3.org/2000/svg}rect")
        if r.find("{http://www.w3.org/2000/svg}title") is not None
    }
    (y_a, h_a), (y_b, h_b) = bars["fill-treatment"], bars["fill-base"]
    assert y_b + h_b == pytest.approx(y_a)
    assert h_b / h_a == pytest.approx(1.5, abs=0.01)


def test_pair_grid_counts_and_wraps() -> None:
    row = [Square(Outcome.WON, "x")] * 60 + [Square(Outcome.LOST, "y", "#session-3")]
    wide, narrow = (ElementTree.fromstring(pair_grid([("sum", row)], w)) for w in (720, 340))
    assert "60 won, 1 lost" in ElementTree.tostring(wide, "unicode")
    assert [len(list(s.iter("{http://www.w3.org/2000/svg}rect"))) for s in (wide, narrow)] == [
        61
    ] * 2
    assert [len(list(s.iter("{http://www.w3.org/2000/svg}a"))) for s in (wide, narrow)] == [1, 1]
    heights = [float(s.attrib["viewBox"].split()[3]) for s in (wide, narrow)]
    assert heights[1] > heights[0]


def test_standalone_files_bring_their_style() -> None:
    svg = standalone(curves("t", [Series("a", [(0, 1.0)])]))
    root = ElementTree.fromstring(svg)
    assert root[0].tag.endswith("style")
    assert "prefers-color-scheme: dark" in (root[0].text or "")


def test_a_curve_that_stays_on_its_bound_shows_nothing_below() -> None:
    flat = Series("masked", [(0.0, 0.0), (4.0, 0.0)])
    labels = re.findall(r'class="tick"[^>]*>([^<]*)<', curves("t", [flat], bounds=(0.0, None)))
    assert "0" in labels
    assert not any(label.startswith("-") for label in labels)


def test_one_step_has_one_label() -> None:
    drawn = curves("t", [Series("s", [(0.0, 0.5)])], bounds=(0.0, 1.0))
    assert re.findall(r'class="tick" text-anchor="middle">([^<]*)<', drawn) == ["0"]
