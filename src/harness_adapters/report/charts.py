"""The report's charts, each a function from numbers to one SVG drawing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness_adapters.evaluation.results import Rate, Row
from harness_adapters.report.svg import (
    Scale,
    dot,
    drawing,
    line,
    number,
    path,
    percent,
    rect,
    safe,
    text,
    ticks,
)


@dataclass(frozen=True, slots=True)
class ArmRate:
    """One bar of the result: who played, and how often it solved its tasks."""

    name: str
    rate: Rate
    style: str
    """CSS class: `raw`, `base` or `treatment`."""


@dataclass(frozen=True, slots=True)
class Series:
    """A curve: points (step, value) in order of steps."""

    name: str
    points: Sequence[tuple[float, float]]
    style: str = "treatment"
    marked: bool = False
    """Draw a dot at each point; for sparse series."""


def rates(arms: Sequence[ArmRate], width: int) -> str:
    """Pass rate of each arm as a bar with its 95% interval."""
    parts: list[str] = []
    scale = Scale(0, 1, 0, width)
    for index, arm in enumerate(arms):
        top, rate = index * 58, arm.rate
        parts.append(text(0, top + 15, arm.name, style="label strong"))
        count = f"{rate.solved} of {rate.sessions}"
        parts.append(text(width, top + 15, percent(rate.value), style="value", anchor="end"))
        parts.append(text(width - 52, top + 15, count, style="label muted", anchor="end"))
        parts.append(rect(0, top + 25, width, 12, "track", round_=3))
        hint = f"{arm.name}: {count} sessions solved"
        parts.append(
            rect(0, top + 25, scale(rate.value), 12, f"fill-{arm.style}", hint=hint, round_=3)
        )
        if rate.interval is not None:
            low, high = scale(rate.interval.low), scale(rate.interval.high)
            middle = top + 31
            parts += [
                line(low, middle, high, middle, "halo"),
                line(low, middle, high, middle, "whisker"),
                line(low, middle - 5, low, middle + 5, "whisker"),
                line(high, middle - 5, high, middle + 5, "whisker"),
            ]
    base = len(arms) * 58
    for share in (0, 0.25, 0.5, 0.75, 1):
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        parts.append(text(scale(share), base, percent(share), style="tick", anchor=anchor))
    label = "; ".join(f"{a.name} {a.rate.value:.0%}" for a in arms)
    return drawing(width, base + 8, f"Pass rates: {label}", parts)


def dumbbells(rows: Sequence[Row], base: str, treatment: str, width: int) -> str:
    """Each family, or family at one level, from the base's pass rate to the treatment's."""
    left, right = (150, 110) if width > 500 else (112, 76)
    scale = Scale(0, 1, left + 8, width - right - 8)
    parts: list[str] = []
    y = 34.0
    kind = "family" if all(r.level is None for r in rows) else "family and level"
    heads = text(0, 14, kind, style="tick")
    parts.append(heads + text(width, 14, "solved", style="tick", anchor="end"))
    for share in (0, 0.5, 1):
        parts.append(text(scale(share), 14, percent(share), style="tick", anchor="middle"))
    body: list[str] = []
    for row in rows:
        body += _dumbbell(row, y, scale, base, treatment, width)
        y += 22
    grid = [line(scale(s), 22, scale(s), y - 8, "grid") for s in (0, 0.25, 0.5, 0.75, 1)]
    return drawing(width, y, f"Pass rate by {kind}, {base} to {treatment}", grid + parts + body)


def _dumbbell(row: Row, y: float, scale: Scale, base: str, treatment: str, width: int) -> list[str]:
    start, stop = scale(row.base.value), scale(row.treatment.value)
    better = row.treatment.value >= row.base.value
    name = row.family if row.level is None else f"{row.family} {row.level}"
    limit = 22 if width > 500 else 16
    shown = name if len(name) <= limit else f"{name[: limit - 1]}…"
    hint = (
        f"{name}: {base} {row.base.solved} of {row.base.sessions}, {treatment} "
        f"{row.treatment.solved} of {row.treatment.sessions}; "
        f"won {row.discordance.only_treatment}, lost {row.discordance.only_base}"
    )
    counts = f"{row.base.solved} → {row.treatment.solved} of {row.pairs}"
    return [
        text(0, y + 4, shown, style="label"),
        line(start, y, stop, y, "link" if better else "link worse"),
        dot(start, y, "fill-base", hint=hint),
        dot(stop, y, "fill-treatment", hint=hint, radius=5),
        text(width, y + 4, counts, style="label muted", anchor="end"),
    ]


class Outcome(StrEnum):
    """Who solved a pair's task; names the square's CSS class."""

    WON = "won"
    BOTH = "both"
    LOST = "lost"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Square:
    """One pair in the grid. `link` is a page fragment or empty."""

    outcome: Outcome
    hint: str
    link: str = ""


def pair_grid(rows: Sequence[tuple[str, Sequence[Square]]], width: int) -> str:
    """Every pair as a square, one row of squares per family, lost and won counted."""
    left, right = (150, 84) if width > 500 else (112, 62)
    side, gap = 13, 3
    across = max(1, (width - left - right) // (side + gap))
    parts: list[str] = []
    y = 0
    for family, squares in rows:
        shown = family if len(family) <= 20 else f"{family[:19]}…"
        won, lost = (sum(s.outcome is o for s in squares) for o in (Outcome.WON, Outcome.LOST))
        parts.append(text(0, y + 11, shown, style="label"))
        counts = f"{won} won, {lost} lost" if width > 500 else f"+{won} \u2212{lost}"
        parts.append(text(width, y + 11, counts, style="label muted", anchor="end"))
        for index, square in enumerate(squares):
            x, down = left + index % across * (side + gap), y + index // across * (side + gap)
            box = rect(x + 0.5, down + 0.5, side - 1, side - 1, f"pair {square.outcome}",
                       hint=square.hint, round_=2.5)  # fmt: skip
            link = f'<a href="{safe(square.link)}">{box}</a>' if square.link else box
            parts.append(link)
        y += max(1, -(-len(squares) // across)) * (side + gap) + 8
    return drawing(width, max(y, 20), "Every pair of sessions by who solved it", parts)


def histogram(
    base: Sequence[int], treatment: Sequence[int], names: tuple[str, str], width: int
) -> str:
    """Sessions by number of tool calls, the two arms side by side."""
    top = min(max([*base, *treatment, 1]), 20)
    counts = [Counter(min(v, top) for v in arm) for arm in (base, treatment)]
    height, left, bottom = 190, 30, 166
    marks = ticks(0, max(max(c.values(), default=0) for c in counts) or 1, 4)
    up = Scale(0, marks[-1], bottom, 14)
    parts = [_grid(mark, up, left, width, number) for mark in marks]
    slot = (width - left) / (top + 1)
    bar = min(slot * 0.38, 26)
    for calls in range(top + 1):
        middle = left + slot * (calls + 0.5)
        label = f"{calls}+" if calls == top and top == 20 else str(calls)
        parts.append(text(round(middle, 1), bottom + 16, label, style="tick", anchor="middle"))
        for side, (count, style) in enumerate(zip(counts, ("base", "treatment"), strict=True)):
            x = middle - bar - 1 if side == 0 else middle + 1
            hint = f"{names[side]}: {count[calls]} sessions with {label} calls"
            peak = up(count[calls])
            parts.append(
                rect(round(x, 1), peak, bar, bottom - peak, f"fill-{style}", hint=hint, round_=1.5)
            )
    return drawing(width, height, f"Tool calls per session, {names[0]} and {names[1]}", parts)


def curves(
    title: str,
    series: Sequence[Series],
    *,
    band: tuple[Series, Series] | None = None,
    kept: float | None = None,
    bounds: tuple[float | None, float | None] = (None, None),
    form: Callable[[float], str] = number,
    legend: bool = True,
    width: int = 340,
) -> str:
    """Lines over training steps; `kept` marks the step of the chosen checkpoint.

    `band` shades what lies between two series, low and high.
    """
    height, left, bottom = 190, 44, 164
    points = [p for s in [*series, *(band or ())] for p in s.points]
    low = min([v for _, v in points] + [b for b in bounds[:1] if b is not None])
    high = max([v for _, v in points] + [b for b in bounds[1:] if b is not None])
    if high <= low and bounds[0] is not None:  # flat on its bound: nothing lies below it
        high = low + 1
    marks = ticks(low, high, 4)
    up = Scale(marks[0], marks[-1], bottom, 34)
    steps = [x for x, _ in points]
    across = _steps(steps, left, width)
    parts = [text(0, 13, title, style="label strong")]
    parts += [_grid(mark, up, left, width, form) for mark in marks]
    parts += _step_labels(across, steps, bottom)
    if kept is not None and across.low <= kept <= across.high:
        parts.append(line(across(kept), 34, across(kept), bottom, "kept"))
    parts += _legend(series if legend and len(series) > 1 else [], width)
    if band is not None:
        edge = [(across(x), up(v)) for x, v in band[1].points]
        edge += [(across(x), up(v)) for x, v in reversed(band[0].points)]
        parts.append(path(edge, "band"))
    for s in series:
        places = [(across(step), up(value)) for step, value in s.points]
        parts.append(path(places, f"curve stroke-{s.style}"))
        for (px, py), (step, value) in zip(places, s.points, strict=True):
            radius = 3.2 if s.marked or len(places) == 1 else 6
            style = f"fill-{s.style}" if s.marked or len(places) == 1 else "hover"
            hint = f"step {step:g}: {s.name} {form(value)}"
            parts.append(dot(px, py, style, radius=radius, hint=hint))
    return drawing(width, height, title, parts)


def stacks(title: str, layers: Sequence[Series], *, width: int = 340) -> str:
    """Stacked bars over training steps: how many groups of each kind."""
    height, left, bottom = 190, 44, 164
    steps = sorted({x for layer in layers for x, _ in layer.points})
    heights = {x: sum(dict(layer.points).get(x, 0.0) for layer in layers) for x in steps}
    marks = ticks(0, max(heights.values()) or 1, 4)
    up = Scale(0, marks[-1], bottom, 34)
    across = _steps(steps, left + 6, width - 6)
    bar = max(2.0, min(16.0, (width - left) / (len(steps) + 1) * 0.72))
    parts = [text(0, 13, title, style="label strong")]
    parts += [_grid(mark, up, left, width, number) for mark in marks]
    parts += _step_labels(across, steps, bottom)
    parts += _legend(layers, width)
    reached = dict.fromkeys(steps, 0.0)
    for layer in layers:
        for step, value in layer.points:
            low, high = up(reached[step]), up(reached[step] + value)
            reached[step] += value
            hint = f"step {step:g}: {value:g} {layer.name}"
            place = round(across(step) - bar / 2, 1)
            parts.append(rect(place, high, bar, low - high, f"fill-{layer.style}", hint=hint))
    return drawing(width, height, title, parts)


def _legend(series: Sequence[Series], width: float) -> list[str]:
    """Names, each after its swatch, at the right end of the title's line."""
    parts: list[str] = []
    x = width - sum(len(s.name) * 6 + 26 for s in series) + 12
    for s in series:
        parts.append(rect(round(x, 1), 5, 9, 9, f"fill-{s.style}", round_=2))
        parts.append(text(round(x + 13, 1), 13, s.name, style="legend"))
        x += len(s.name) * 6 + 26
    return parts


def _grid(value: float, up: Scale, left: float, width: float, form: Callable[[float], str]) -> str:
    y = up(value)
    return line(left, y, width, y, "grid") + text(
        left - 7, y + 4, form(value), style="tick", anchor="end"
    )


def _steps(steps: Sequence[float], left: float, width: float) -> Scale:
    low, high = min(steps), max(steps)
    if low == high:
        low, high = low - 1, high + 1
    return Scale(low, high, left + 6, width - 6)


def _step_labels(across: Scale, steps: Sequence[float], bottom: float) -> list[str]:
    marks = sorted({round(m) for m in ticks(across.low, across.high, 5)})
    return [
        text(across(m), bottom + 17, m, style="tick", anchor="middle")
        for m in marks
        if min(steps) <= m <= max(steps)
    ]
