"""Two arms on the same tasks: what changed, how sure that is, and what was left out.

Only whole pairs count (`pairs`): a task's attempt of which both sessions were scored. Everything
else is excluded by name, never averaged as 0. All figures of a comparison are over the same pairs;
families that training never saw stand apart.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from harness_adapters.errors import StoreError
from harness_adapters.evaluation.headline import headline
from harness_adapters.evaluation.pairs import Pair, Selection, matching, select, solved
from harness_adapters.evaluation.results import Calls, Comparison, Rate, Row
from harness_adapters.evaluation.statistics import (
    Discordance,
    Estimate,
    Interval,
    clustered_mean,
    discordance,
    mcnemar_exact,
    minimum_detectable_effect,
    more_clusters_to_settle,
    paired_difference,
    paired_ratio,
    pass_at_k,
    wilson,
)
from harness_adapters.records import Phase, Rollout

__all__ = [
    "Calls",
    "Comparison",
    "Pair",
    "Rate",
    "Row",
    "Selection",
    "busy_seconds",
    "compare",
    "headline",
    "matching",
    "plain",
    "rate",
    "select",
    "solved",
    "summarise",
    "to_json",
]


def compare(
    rollouts: Iterable[Rollout],
    *,
    base: str = "base",
    treatment: str = "pi",
    unseen_families: Collection[str] = (),
    phase: Phase = Phase.TEST,
    played: Mapping[str, str] | None = None,
    temperature: float | None = None,
) -> Comparison:
    """Pair the two arms' sessions of a phase. Raises StoreError where no whole pair exists.

    The figures are over families that training had tasks of; `unseen_families` are reported apart
    (`Comparison.unseen`), and are the whole comparison only where there is no other task.

    `played` (arm -> name of the adapter that plays it) and `temperature` restrict the arms to
    sessions played so; others under the same label are excluded and counted.
    """
    return summarise(
        select(
            rollouts,
            base=base,
            treatment=treatment,
            unseen_families=unseen_families,
            phase=phase,
            played=played,
            temperature=temperature,
        )
    )


def summarise(selection: Selection) -> Comparison:
    """All figures of a selection. Raises StoreError where no whole pair exists."""
    base, treatment, unseen = selection.base, selection.treatment, selection.unseen_families
    pairs, everything = selection.quoted, [*selection.quoted, *selection.apart]
    if not pairs:
        raise StoreError(
            f"nothing to compare: no task has a scored session of both {base} and {treatment}; "
            "finish the evaluation first"
        )
    attempts = Counter(p.task for p in pairs)
    by_task = _difference(pairs, lambda p: p.task)
    discordant = _discordance(pairs)
    ends: dict[str, dict[str, int]] = {}
    for arm in (base, treatment):
        counts = Counter(str(r.end) for r in selection.sessions if r.arm == arm)
        ends[arm] = dict(counts.most_common())
    solved_by_both = [p for p in pairs if solved(p.base) and solved(p.treatment)]
    return Comparison(
        base=base,
        treatment=treatment,
        tasks=len(attempts),
        pairs=len(pairs),
        attempts=max(attempts.values()),
        base_rate=rate(p.base for p in pairs),
        treatment_rate=rate(p.treatment for p in pairs),
        by_task=by_task,
        by_family_level=_difference(pairs, lambda p: p.family_level),
        by_family=_difference(pairs, lambda p: p.family),
        discordance=discordant,
        mcnemar=(
            mcnemar_exact(discordant.only_base, discordant.only_treatment)
            if max(attempts.values()) == 1
            else None
        ),
        detectable=minimum_detectable_effect(by_task),
        more_tasks=more_clusters_to_settle(by_task),
        pass_at=_pass_at(pairs),
        families=_rows(everything, lambda p: (p.family, None), unseen),
        family_levels=_rows(everything, lambda p: p.family_level, unseen),
        seen=_part(
            "seen families", [p for p in everything if p.family not in unseen], unseen=False
        ),
        unseen=_part("unseen families", [p for p in everything if p.family in unseen], unseen=True),
        calls=_calls(pairs),
        calls_both_solved=_calls(solved_by_both) if solved_by_both else None,
        excluded=selection.excluded,
        ends=ends,
        sessions=len(selection.sessions),
        minutes=busy_seconds(selection.sessions) / 60,
    )


def rate(rollouts: Iterable[Rollout]) -> Rate:
    """Pass rate of scored sessions: Wilson's interval, or clustered by task with repetitions."""
    scored = [r for r in rollouts if r.reward is not None]
    outcomes = [solved(r) for r in scored]
    tasks = [r.task for r in scored]
    if not scored:
        return Rate(0, 0, 0.0, None)
    interval: Interval | None = wilson(sum(outcomes), len(outcomes))
    if len(set(tasks)) < len(tasks) and 0 < sum(outcomes) < len(outcomes):
        clustered = clustered_mean(outcomes, tasks).interval
        interval = clustered.clipped(0, 1) if clustered else None
    return Rate(sum(outcomes), len(outcomes), sum(outcomes) / len(outcomes), interval)


def busy_seconds(rollouts: Iterable[Rollout]) -> float:
    """Time during which at least one session ran; pauses between resumed runs don't count."""
    total, reached = 0.0, float("-inf")
    for start, stop in sorted((r.started, r.started + r.seconds) for r in rollouts):
        total += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    return total


def to_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain JSON values; what is not known (NaN) is null."""
    values: dict[str, Any] = plain(asdict(comparison))
    return values


def plain(value: Any) -> Any:
    """Nested values as strict JSON has them: keys are strings, lists for tuples, null for NaN."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _outcomes(pairs: Sequence[Pair]) -> tuple[list[bool], list[bool]]:
    return [solved(p.base) for p in pairs], [solved(p.treatment) for p in pairs]


def _difference(pairs: Sequence[Pair], cluster: Callable[[Pair], Hashable]) -> Estimate:
    base, treatment = _outcomes(pairs)
    return paired_difference(base, treatment, [cluster(p) for p in pairs], bootstrap=True)


def _discordance(pairs: Sequence[Pair]) -> Discordance:
    return discordance(*_outcomes(pairs))


def _calls(pairs: Sequence[Pair]) -> Calls:
    base = [float(p.base.calls) for p in pairs]
    treatment = [float(p.treatment.calls) for p in pairs]
    tasks = [p.task for p in pairs]
    return Calls(
        pairs=len(pairs),
        base=sum(base) / len(base),
        treatment=sum(treatment) / len(treatment),
        difference=clustered_mean([t - b for b, t in zip(base, treatment, strict=True)], tasks),
        ratio=paired_ratio(base, treatment, tasks),
    )


def _rows(
    pairs: Sequence[Pair], key: Callable[[Pair], tuple[str, int | None]], unseen: Collection[str]
) -> list[Row]:
    """One row per key, families that training could meet first, then by name and level."""
    parts: dict[tuple[str, int | None], list[Pair]] = {}
    for pair in pairs:
        parts.setdefault(key(pair), []).append(pair)
    order = sorted(parts, key=lambda k: (k[0] in unseen, k[0], k[1] or 0))
    return [_row(*k, parts[k], unseen=k[0] in unseen) for k in order]


def _part(name: str, pairs: Sequence[Pair], *, unseen: bool) -> Row | None:
    return _row(name, None, pairs, unseen=unseen) if pairs else None


def _row(family: str, level: int | None, pairs: Sequence[Pair], *, unseen: bool) -> Row:
    return Row(
        family=family,
        level=level,
        unseen=unseen,
        tasks=len({p.task for p in pairs}),
        pairs=len(pairs),
        base=rate(p.base for p in pairs),
        treatment=rate(p.treatment for p in pairs),
        difference=_difference(pairs, lambda p: p.task),
        discordance=_discordance(pairs),
        base_calls=sum(p.base.calls for p in pairs) / len(pairs),
        treatment_calls=sum(p.treatment.calls for p in pairs) / len(pairs),
    )


def _pass_at(pairs: Sequence[Pair]) -> dict[int, tuple[float, float]]:
    """pass@k for k = 1, 2, 4, ... up to what the attempts allow."""
    by_task: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_task.setdefault(pair.task, []).append(pair)
    result: dict[int, tuple[float, float]] = {}
    k = 1
    while k <= max(map(len, by_task.values())):
        enough = [_outcomes(rows) for rows in by_task.values() if len(rows) >= k]
        means = [sum(pass_at_k(len(arm[i]), sum(arm[i]), k) for arm in enough) for i in (0, 1)]
        result[k] = (means[0] / len(enough), means[1] / len(enough))
        k *= 2
    return result
