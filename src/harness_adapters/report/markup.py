"""Small pieces of HTML that all sections share."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.evaluation.results import Calls
from harness_adapters.evaluation.statistics import Interval
from harness_adapters.report.svg import safe


def points(interval: Interval | None) -> str:
    """[18, 36] in points of a percentage."""
    if interval is None:
        return "unknown"
    return minus(f"[{round(interval.low * 100)}, {round(interval.high * 100)}]")


def change_interval(calls: Calls) -> str:
    """The 95% interval of the change in tool calls: [-31, -12]%."""
    if calls.ratio is None or calls.ratio.interval is None:
        return ""
    interval = calls.ratio.interval
    return points(Interval(interval.low - 1, interval.high - 1)) + "%"


def minus(number: str) -> str:
    """A number's text with a true minus sign, as wide as the plus."""
    return number.replace("-", "\u2212")


def cell(value: object) -> str:
    """A table cell that holds a number."""
    return f'<td class="number">{safe(value)}</td>'


def table(head: Sequence[str], body: str, *, plain: bool = False) -> str:
    """A table; a column whose head starts with `>` holds numbers."""
    cells = "".join(
        f'<th scope="col" class="number">{safe(h[1:])}</th>'
        if h.startswith(">")
        else f'<th scope="col">{safe(h)}</th>'
        for h in head
    )
    style = ' class="plain"' if plain else ""
    return (
        f'<div class="scroll"><table{style}><thead><tr>{cells}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def section(anchor: str, title: str, body: str) -> str:
    """A part of the page that the navigation can reach."""
    return f'<section id="{anchor}"><h2>{safe(title)}</h2>{body}</section>'
