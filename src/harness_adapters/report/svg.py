"""Small SVG drawing kit: escaped text, scales, axes. Colours are CSS classes (`assets/page.css`).

Charts are strings. They carry no style of their own inside the page, where they follow its light
or dark colours; `standalone` makes a file of one that looks the same elsewhere.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from harness_adapters.report.text import visible

WIDE, NARROW = 720, 340
"""Drawing widths in px: on a desk, and on a phone, where shrinking the wide one is unreadable."""


def safe(text: object) -> str:
    """Any value as text for HTML and SVG, in content and in attributes."""
    return escape(visible(str(text)), quote=True)


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear map from data to pixels."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Where `value` lies, rounded to a tenth of a pixel."""
        span = (self.high - self.low) or 1.0
        place = self.start + (value - self.low) / span * (self.stop - self.start)
        return round(place, 1)


TINY = 1e-300
"""Ranges smaller than this have no logarithm to speak of."""


def ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round numbers that cover [low, high]; the first is <= low, the last >= high."""
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = 0.0, 1.0
    if high - low < TINY:
        pad = abs(low) * 0.05 if abs(low) > 1e3 * TINY else 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / max(count - 1, 1)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [i * step for i in range(first, last + 1)]


def number(value: float) -> str:
    """A short label: 1.2k, 0.03, 4e-05."""
    size = abs(value)
    if value == 0:
        return "0"
    if size >= 10_000:
        return f"{value / 1000:.0f}k"
    if size >= 1_000:
        return f"{value / 1000:.1f}k".replace(".0k", "k")
    return f"{value:.4g}"


def percent(value: float) -> str:
    """0.41 -> 41%."""
    return f"{value:.0%}"


def text(x: float, y: float, content: object, *, style: str = "", anchor: str = "start") -> str:
    """A line of text; `style` names CSS classes."""
    return f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{safe(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    """A straight stroke."""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{style}"/>'


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    style: str,
    *,
    hint: str = "",
    round_: float = 0,
) -> str:
    """A filled box; `hint` shows when the pointer rests on it."""
    corner = f' rx="{round_}"' if round_ else ""
    body = f'<rect x="{x}" y="{y}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
    return f'{body}{corner} class="{style}">{_hint(hint)}</rect>'


def dot(x: float, y: float, style: str, *, radius: float = 4.5, hint: str = "") -> str:
    """A filled circle."""
    return f'<circle cx="{x}" cy="{y}" r="{radius}" class="{style}">{_hint(hint)}</circle>'


def path(points: Sequence[tuple[float, float]], style: str) -> str:
    """A polyline through pixel positions."""
    steps = " ".join(f"{'L' if i else 'M'}{x},{y}" for i, (x, y) in enumerate(points))
    return f'<path d="{steps}" class="{style}"/>'


def drawing(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    """The SVG element; `label` is what a screen reader says."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'role="img" aria-label="{safe(label)}">{"".join(parts)}</svg>'
    )


def responsive(draw: Callable[[int], str]) -> str:
    """One chart at both widths; the page's style shows the one that fits."""
    return (
        f'<div class="chart on-wide">{draw(WIDE)}</div>'
        f'<div class="chart on-narrow">{draw(NARROW)}</div>'
    )


def standalone(svg: str, key: Sequence[tuple[str, str]] = ()) -> str:
    """The same drawing as a file of its own, light or dark as its viewer is, with a margin.

    `key` names what the colours mean, (name, CSS class), above the drawing.
    """
    style = files("harness_adapters.report").joinpath("assets", "chart.css").read_text("utf-8")
    found = re.match(r'(<svg [^>]*viewBox=")0 0 ([\d.]+) ([\d.]+)("[^>]*>)', svg)
    assert found is not None, "not a drawing of this module"
    before, width, height, after = found.groups()
    top = -48 if key else -20
    frame = f"-20 {top} {float(width) + 40:g} {float(height) + 20 - top:g}"
    parts, x = [f'<rect x="-20" y="{top}" width="100%" height="100%" class="paper"/>'], 0.0
    for name, colour in key:
        parts.append(rect(x, -29, 11, 11, colour, round_=2.5))
        parts.append(text(x + 17, -19, name, style="muted"))
        x += len(name) * 6.6 + 40
    return f"{before}{frame}{after}<style>{style}</style>{''.join(parts)}{svg[found.end() :]}"


def _hint(content: str) -> str:
    return f"<title>{safe(content)}</title>" if content else ""
