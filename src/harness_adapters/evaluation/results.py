"""What a paired evaluation gives: rates, rows, tool calls, and all of it as one `Comparison`."""

from __future__ import annotations

from dataclasses import dataclass

from harness_adapters.evaluation.statistics import Discordance, Estimate, Interval


@dataclass(frozen=True, slots=True)
class Rate:
    """Share of sessions that solved their task, with its own (unpaired) 95% interval."""

    solved: int
    sessions: int
    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class Row:
    """One family, one family at one level, or another part of the tasks."""

    family: str
    level: int | None
    unseen: bool
    """The family appears in the test split only."""
    tasks: int
    pairs: int
    base: Rate
    treatment: Rate
    difference: Estimate
    """Clustered by task."""
    discordance: Discordance
    base_calls: float
    """Mean tool calls per session."""
    treatment_calls: float


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls per session, paired, clustered by task."""

    pairs: int
    base: float
    treatment: float
    difference: Estimate
    ratio: Estimate | None
    """Treatment over base; None where the base made no call at all."""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Sessions left out for one reason."""

    arm: str
    reason: str
    sessions: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything a paired evaluation says. Rates and differences are shares in [-1, 1].

    From `tasks` to `pass_at`, and of `calls`, all figures are over the same pairs: those of
    families that training had tasks of (of all families where it had none of these).
    """

    base: str
    treatment: str
    tasks: int
    pairs: int
    attempts: int
    """Largest number of attempts per task and arm."""
    base_rate: Rate
    treatment_rate: Rate
    by_task: Estimate
    """Difference of pass@1, clustered by task: what is quoted."""
    by_family_level: Estimate
    by_family: Estimate
    """The same difference, clustered by family: does it carry over to other kinds of tasks?"""
    discordance: Discordance
    mcnemar: float | None
    """Exact p; None with several attempts per task, whose pairs aren't independent."""
    detectable: float | None
    """Smallest difference that this evaluation would find with 80% chance."""
    more_tasks: int | None
    """More tasks needed to settle it with 80% chance; 0 when settled, None when unknown."""
    pass_at: dict[int, tuple[float, float]]
    """k -> (base, treatment), over tasks with at least k attempts by both arms."""
    families: list[Row]
    """Every family, those that training never saw last (`Row.unseen`)."""
    family_levels: list[Row]
    seen: Row | None
    """All families that training could meet, together."""
    unseen: Row | None
    """All families that appear in the test split only; not part of the figures above."""
    calls: Calls
    """On all quoted pairs: the figure to quote."""
    calls_both_solved: Calls | None
    """On pairs that both arms solved; conditions on the outcome, so never quoted alone."""
    excluded: list[Exclusion]
    ends: dict[str, dict[str, int]]
    """arm -> how its sessions ended -> number, excluded sessions included."""
    sessions: int
    """All sessions of both arms, on all families, those without a partner or a reward included."""
    minutes: float
    """Time during which at least one of them ran."""
