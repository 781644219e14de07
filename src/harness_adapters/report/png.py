"""Plots as PNG: the report's own SVG dialect drawn by matplotlib.

One drawing for both formats. `svg.py` writes lines, boxes, circles, polylines and text with CSS
classes; this reads them back with the light colours of `assets/chart.css`. Not a general SVG
reader.
"""

from __future__ import annotations

import io
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCALE = 2
"""Pixels per unit of the drawing."""
_FONT = 0.88
"""matplotlib's own font is wider than the ones that a browser takes."""

_PLAIN = {"font-size": "12.5px"}
_PATH = re.compile(r"[ML]([-\d.]+),([-\d.]+)")


def png(svg: str) -> bytes:
    """Draw a standalone SVG of `svg.standalone`, on white."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(svg)
    x, y, width, height = (float(part) for part in root.attrib["viewBox"].split())
    # 72 dots per inch: one unit of the drawing is one point, as font sizes are counted.
    figure = Figure(figsize=(width / 72, height / 72), dpi=72 * SCALE)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(x, x + width)
    axes.set_ylim(y + height, y)
    axes.set_axis_off()
    order = 0
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        draw = _DRAW.get(tag)
        if draw is not None and "%" not in element.get("width", ""):
            style = _style(tag, element.get("class", ""))
            order += 1
            draw(axes, element, style, order)
    file = io.BytesIO()
    figure.savefig(file, format="png", facecolor="white")
    return file.getvalue()


def _line(axes: Axes, e: ElementTree.Element, style: dict[str, str], order: int) -> None:
    xs, ys = (
        [float(e.attrib["x1"]), float(e.attrib["x2"])],
        [
            float(e.attrib["y1"]),
            float(e.attrib["y2"]),
        ],
    )
    _stroke(axes, xs, ys, style, order)


def _path(axes: Axes, e: ElementTree.Element, style: dict[str, str], order: int) -> None:
    points = [(float(a), float(b)) for a, b in _PATH.findall(e.attrib["d"])]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    if style.get("fill", "none") != "none":
        alpha = float(style.get("fill-opacity", 1))
        axes.fill(xs, ys, color=style["fill"], alpha=alpha, linewidth=0, zorder=order)
    _stroke(axes, xs, ys, style, order)


def _stroke(
    axes: Axes, xs: list[float], ys: list[float], style: dict[str, str], order: int
) -> None:
    colour = style.get("stroke", "none")
    if colour in ("none", "transparent"):
        return
    dashes = [float(part) for part in style.get("stroke-dasharray", "").split()]
    axes.plot(
        xs,
        ys,
        color=colour,
        linewidth=float(style.get("stroke-width", 1)),
        alpha=float(style.get("stroke-opacity", 1)),
        linestyle=(0, dashes) if dashes else "-",
        solid_capstyle="round",
        zorder=order,
    )


def _rect(axes: Axes, e: ElementTree.Element, style: dict[str, str], order: int) -> None:
    from matplotlib.patches import FancyBboxPatch

    width, height = float(e.attrib["width"]), float(e.attrib["height"])
    corner = min(float(e.get("rx", 0)), width / 2, height / 2)
    box = f"round,pad=0,rounding_size={corner}" if corner > 0 else "square,pad=0"
    place = (float(e.attrib["x"]), float(e.attrib["y"]))
    if width > 0 and height > 0:
        axes.add_patch(
            FancyBboxPatch(place, width, height, boxstyle=box, **_filled(style), zorder=order)
        )


def _circle(axes: Axes, e: ElementTree.Element, style: dict[str, str], order: int) -> None:
    from matplotlib.patches import Circle

    place = (float(e.attrib["cx"]), float(e.attrib["cy"]))
    axes.add_patch(Circle(place, float(e.attrib["r"]), **_filled(style), zorder=order))


def _text(axes: Axes, e: ElementTree.Element, style: dict[str, str], order: int) -> None:
    size = float(style.get("font-size", "12.5px").removesuffix("px")) * _FONT
    anchor = {"end": "right", "middle": "center"}.get(e.get("text-anchor", ""), "left")
    axes.text(
        float(e.attrib["x"]),
        float(e.attrib["y"]),
        # Session text may hold a formula's dollar signs.
        (e.text or "").replace("$", r"\$"),
        fontsize=size,
        color=style.get("fill", "black"),
        ha=anchor,
        va="baseline",
        fontweight="bold" if int(style.get("font-weight", 400)) >= 600 else "normal",
        zorder=order,
        clip_on=False,
    )


def _filled(style: dict[str, str]) -> dict[str, Any]:
    """Face and edge of a patch."""
    from matplotlib.colors import to_rgba

    fill, stroke = style.get("fill", "black"), style.get("stroke", "none")
    face = "none"
    if fill not in ("none", "transparent"):
        face = to_rgba(fill, float(style.get("fill-opacity", 1)))  # type: ignore[assignment]
    edge = "none" if stroke in ("none", "transparent") else stroke
    return {"facecolor": face, "edgecolor": edge, "linewidth": float(style.get("stroke-width", 1))}


_DRAW = {"line": _line, "path": _path, "rect": _rect, "circle": _circle, "text": _text}


@cache
def _rules() -> list[tuple[str, frozenset[str], dict[str, str]]]:
    """The style sheet's rules in order: element or empty, classes, declarations."""
    sheet = files("harness_adapters.report").joinpath("assets", "chart.css").read_text("utf-8")
    sheet = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", sheet)
    colours = dict(re.findall(r"(--[\w-]+):\s*([^;]+);", sheet))
    rules: list[tuple[str, frozenset[str], dict[str, str]]] = []
    for selectors, body in re.findall(r"([^{}]+)\{([^{}]*)\}", sheet):
        declared = dict(re.findall(r"([\w-]+):\s*([^;]+);", body))
        values = {
            key: re.sub(r"var\((--[\w-]+)\)", lambda m: colours[m[1]], value)
            for key, value in declared.items()
            if not key.startswith("--")
        }
        for selector in selectors.split(","):
            own = re.fullmatch(r"svg (\w*)((?:\.[\w-]+)*)", selector.strip())
            if own is not None:  # not those of links and pointers
                rules.append((own[1], frozenset(own[2].split(".")[1:]), values))
    return rules


@cache
def _style(tag: str, classes: str) -> dict[str, str]:
    have = set(classes.split())
    found = dict(_PLAIN)
    # Classes count for more than elements, whichever comes first.
    for element, wanted, values in sorted(_rules(), key=lambda rule: len(rule[1])):
        if element in ("", tag) and wanted <= have and (element or wanted):
            found |= values
    return found
