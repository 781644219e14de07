"""The one sentence to quote, worded so that it never claims more than the intervals do."""

from __future__ import annotations

from harness_adapters.evaluation.results import Calls, Comparison
from harness_adapters.evaluation.statistics import Interval


def headline(
    comparison: Comparison,
    *,
    name: str | None = None,
    sessions: int | None = None,
    minutes: float | None = None,
    cost: str = "",
) -> str:
    """One sentence to quote. `sessions` and `minutes` of the whole run replace the evaluation's.

    It begins with `name`, else the treatment's label, and ends with `cost` where that is known.
    """
    c = comparison
    interval = c.by_task.interval
    difference = f"{_points(c.by_task.value)}{_bracket(interval)} points"
    count = c.sessions if sessions is None else sessions
    time = c.minutes if minutes is None else minutes
    change = f"{c.base_rate.value:.0%} -> {c.treatment_rate.value:.0%}"
    return (
        f"{name or c.treatment}: {change}, {difference} "
        f"pass@1 on {c.tasks} held-out {_plural(c.tasks, 'task')}{_kind(c)}{_doubt(c)}, "
        f"{_calls_phrase(c.calls)}, {count:,} {_plural(count, 'session')}, "
        f"{_minutes(time)}{f', {cost}' if cost else ''}"
    )


def points(comparison: Comparison | None) -> str:
    """`+10 [3, 17]`: a difference alone; a dash where there is none."""
    if comparison is None:
        return "-"
    return f"{_points(comparison.by_task.value)}{_bracket(comparison.by_task.interval)}"


def apart(comparison: Comparison) -> str:
    """The second sentence: families that only the test split has, and the harder interval."""
    parts: list[str] = []
    row = comparison.unseen
    if row is not None and comparison.seen is not None:
        parts.append(
            f"families never trained on: {row.base.value:.0%} -> {row.treatment.value:.0%}, "
            f"{_points(row.difference.value)}{_bracket(row.difference.interval)} points "
            f"on {row.tasks} {_plural(row.tasks, 'task')}"
        )
    family = comparison.by_family.interval
    if family is not None:
        parts.append(f"clustered by family the interval is{_bracket(family)}")
    return "; ".join(parts)


def _kind(c: Comparison) -> str:
    """Said where the figures are not over families that training had tasks of."""
    return " of families never trained on" if c.seen is None else ""


def _doubt(c: Comparison) -> str:
    """What to add after the difference when the interval can't tell it from none."""
    if c.by_task.interval is None:
        return " (one task only: no interval)"
    if 0.0 not in c.by_task.interval:
        return ""
    if c.more_tasks:
        return (
            f" (not distinguishable from none; about {c.more_tasks:,} more tasks would settle it)"
        )
    return " (no difference)" if c.by_task.value == 0 else " (not distinguishable from none)"


def _calls_phrase(calls: Calls) -> str:
    if calls.ratio is None or calls.ratio.interval is None:
        return f"{calls.base:.1f} -> {calls.treatment:.1f} tool calls"
    change = calls.ratio.value - 1
    interval = calls.ratio.interval
    if 1.0 in interval or round(abs(change) * 100) == 0:
        span = Interval(interval.low - 1, interval.high - 1)
        return f"no clear change in tool calls ({_points(change)}%{_bracket(span)})"
    return f"{abs(change):.0%} {'fewer' if change < 0 else 'more'} tool calls"


def _points(share: float) -> str:
    points = round(share * 100)
    return f"{points:+d}" if points else "0"


def _bracket(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" [{round(interval.low * 100)}, {round(interval.high * 100)}]"


def _minutes(minutes: float) -> str:
    if minutes < 0.5:
        return "under a minute"
    return f"{minutes:.0f} {_plural(round(minutes), 'minute')}"


def _plural(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
