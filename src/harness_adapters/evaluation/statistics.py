"""Statistics of a paired evaluation: rates, paired differences and ratios, what it could detect.

A *row* is one pair of sessions: the same task, the same attempt, once with each arm. Rows of one
cluster (a task with several attempts, a family of tasks) resemble each other, so every interval
here takes a cluster key per row; ignoring it makes intervals far too narrow.

- Rates: Wilson's score interval (Wilson 1927).
- pass@k: the unbiased estimator of Chen et al. 2021 (arXiv:2107.03374), section 2.1.
- Means over clustered rows: the CR2 sandwich variance with Bell and McCaffrey's degrees of freedom
  (2002; Pustejovsky and Tipton 2018, doi:10.1080/07350015.2016.1247004). For a plain mean CR2 is
  sum_g u_g^2 / (1 - n_g / N) / N^2, with u_g the sum of a cluster's residuals; with clusters of
  equal size it equals CR1 (Stata's `cluster`, statsmodels' `cov_type="cluster"`) on G - 1 degrees.
- Bootstrap: whole clusters are drawn with replacement, percentile interval, fixed seed.
- McNemar's exact test: two-sided binomial on the discordant pairs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import stats

RESAMPLES = 10_000
"""Bootstrap draws; the percentile's own error is then about 1% of the interval's width."""

_NO_SPREAD = 1e-12
"""A standard error below this is rounding: the clusters' means don't differ."""

_Rows = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Interval:
    """Closed interval; 95% unless it was asked for otherwise."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def clipped(self, low: float, high: float) -> Interval:
        """The part of it that is possible at all."""
        return Interval(min(max(self.low, low), high), min(max(self.high, low), high))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean (or ratio) over clustered rows with its two intervals.

    The intervals are None where there are fewer than two clusters: nothing is known of the spread.
    """

    value: float
    standard_error: float
    """CR2; of the logarithm where the estimate is a ratio. NaN with fewer than two clusters."""
    degrees_of_freedom: float
    interval: Interval | None
    """Analytic: CR2 with a t quantile."""
    bootstrap: Interval | None
    rows: int
    clusters: int

    @property
    def difference(self) -> float:
        """`value`, by its name in a paired comparison."""
        return self.value

    @property
    def low(self) -> float:
        """Lower end of the analytic interval; -inf where nothing is known of the spread."""
        return -math.inf if self.interval is None else self.interval.low

    @property
    def high(self) -> float:
        """Upper end of the analytic interval; inf where nothing is known of the spread."""
        return math.inf if self.interval is None else self.interval.high

    @property
    def n(self) -> int:
        """Pairs that it is made of."""
        return self.rows


@dataclass(frozen=True, slots=True)
class Discordance:
    """The fourfold table of paired outcomes, in pairs."""

    both: int
    only_base: int
    only_treatment: int
    neither: int


def pass_at_k(attempts: int, correct: int, k: int) -> float:
    """Chance that at least one of `k` attempts solves a task; unbiased from `attempts` >= k."""
    if not 0 <= correct <= attempts or not 1 <= k <= attempts:
        raise ValueError(f"pass@{k} of {correct} correct in {attempts} attempts is not defined")
    return 1.0 - math.comb(attempts - correct, k) / math.comb(attempts, k)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share; [0, 1] when nothing was tried."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} trials")
    if trials == 0:
        return Interval(0.0, 1.0)
    z2 = float(stats.norm.ppf(0.5 + level / 2)) ** 2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    spread = share * (1 - share) / trials + z2 / (4 * trials**2)
    half = math.sqrt(z2 * spread) / (1 + z2 / trials)
    low = 0.0 if successes == 0 else centre - half
    return Interval(low, 1.0 if successes == trials else centre + half)


def clustered_mean(
    rows: Sequence[float] | _Rows,
    clusters: Sequence[Hashable],
    *,
    level: float = 0.95,
    bootstrap: bool = True,
    seed: int = 0,
) -> Estimate:
    """Mean of rows with intervals that know which rows belong together."""
    _check_level(level)
    values = _numbers(rows)
    groups = _groups(values, clusters)
    mean = float(values.mean())
    error, degrees = _cr2(values - mean, groups)
    sizes = np.bincount(groups).astype(np.float64)
    sums = np.bincount(groups, weights=values)
    if len(sizes) < 2:
        return Estimate(mean, math.nan, 0.0, None, None, len(values), len(sizes))
    half = float(stats.t.ppf(0.5 + level / 2, degrees)) * error
    drawn = None
    if bootstrap:
        weights = _draws(len(sizes), seed)
        drawn = _percentiles((weights @ sums) / (weights @ sizes), level)
    analytic = Interval(mean - half, mean + half)
    return Estimate(mean, error, degrees, analytic, drawn, len(values), len(sizes))


def paired_difference(
    base: Sequence[float],
    adapter: Sequence[float],
    cluster: Sequence[Hashable],
    level: float = 0.95,
    *,
    bootstrap: bool = False,
    seed: int = 0,
) -> Estimate:
    """Mean of adapter - base over pairs; those with the same `cluster` key belong together.

    Three sequences of equal length; a cluster is a task with its attempts. `difference`, `low`,
    `high`, `n` and `clusters` of the result are what is quoted; `bootstrap` draws the second
    interval, too.

    Outcomes that all lie in [0, 1] give an interval within [-1, 1]. Where their clusters show no
    spread at all the sandwich would claim certainty; then the interval is what Wilson's bound
    allows for a difference that none of the clusters showed.

    Raises ValueError for unequal lengths, nothing at all, values that are not finite numbers, and a
    level outside of (0, 1).
    """
    rows = _paired(adapter, base)
    estimate = clustered_mean(rows, cluster, level=level, bootstrap=bootstrap, seed=seed)
    if estimate.interval is None or not (_shares(base) and _shares(adapter)):
        return estimate
    interval, drawn = estimate.interval, estimate.bootstrap
    if estimate.standard_error < _NO_SPREAD:
        unseen = wilson(0, estimate.clusters, level).high
        interval = Interval(estimate.value - unseen, estimate.value + unseen)
        drawn = interval if bootstrap else None
    return replace(
        estimate,
        interval=interval.clipped(-1.0, 1.0),
        bootstrap=None if drawn is None else drawn.clipped(-1.0, 1.0),
    )


def paired_ratio(
    base: Sequence[float],
    treatment: Sequence[float],
    clusters: Sequence[Hashable],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate | None:
    """Ratio of means treatment / base over pairs of counts; None where the base's mean is 0.

    The analytic interval is the delta method's on the logarithm (rows t/mean(t) - b/mean(b)); it is
    None where the treatment's mean is 0.
    """
    _check_level(level)
    b, t = _numbers(base), _numbers(treatment)
    _paired(t, b)
    groups = _groups(b, clusters)
    count = int(groups.max()) + 1
    if b.mean() == 0.0:
        return None
    ratio = float(t.mean() / b.mean())
    if count < 2:
        return Estimate(ratio, math.nan, 0.0, None, None, len(b), count)
    weights = _draws(count, seed)
    below = weights @ np.bincount(groups, weights=b)
    above = weights @ np.bincount(groups, weights=t)
    bootstrap = _percentiles(above[below > 0] / below[below > 0], level)
    if ratio == 0.0:
        return Estimate(ratio, math.nan, 0.0, None, bootstrap, len(b), count)
    error, degrees = _cr2(t / t.mean() - b / b.mean(), groups)
    factor = math.exp(float(stats.t.ppf(0.5 + level / 2, degrees)) * error)
    analytic = Interval(ratio / factor, ratio * factor)
    return Estimate(ratio, error, degrees, analytic, bootstrap, len(b), count)


def discordance(base: Sequence[bool], treatment: Sequence[bool]) -> Discordance:
    """Count pairs by who solved them."""
    pairs = list(zip(base, treatment, strict=True))
    return Discordance(
        both=pairs.count((True, True)),
        only_base=pairs.count((True, False)),
        only_treatment=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def mcnemar_exact(only_base: int, only_treatment: int) -> float:
    """Two-sided p of "both arms are equally good"; for one attempt per task, pairs independent."""
    if only_base + only_treatment == 0:
        return 1.0
    return float(stats.binomtest(only_base, only_base + only_treatment, 0.5).pvalue)


def minimum_detectable_effect(
    estimate: Estimate, *, power: float = 0.8, level: float = 0.95
) -> float | None:
    """Smallest true difference that an evaluation with this spread finds with chance `power`."""
    if not estimate.standard_error > 0 or estimate.degrees_of_freedom <= 0:
        return None
    return _quantiles(power, level, estimate.degrees_of_freedom) * estimate.standard_error


def more_clusters_to_settle(
    estimate: Estimate, *, power: float = 0.8, level: float = 0.95
) -> int | None:
    """How many more clusters (tasks) would, with chance `power`, give an interval without 0.

    Supposes that the true difference is the measured one and that new clusters spread like these.
    0 where the interval excludes 0 already; None where no number would do (difference 0) or
    nothing is known of the spread.
    """
    if estimate.interval is None or estimate.value == 0 or not estimate.standard_error > 0:
        return None
    if 0.0 not in estimate.interval:
        return 0
    spread = estimate.standard_error * math.sqrt(estimate.clusters)
    needed = estimate.clusters
    # The t quantile depends on the number itself: a few rounds settle it.
    for _ in range(8):
        factor = _quantiles(power, level, max(needed - 1, 1))
        needed = math.ceil((factor * spread / estimate.value) ** 2)
    return max(needed - estimate.clusters, 1)


def _quantiles(power: float, level: float, degrees: float) -> float:
    return float(stats.t.ppf(0.5 + level / 2, degrees) + stats.t.ppf(power, degrees))


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level {level}: an interval's level lies between 0 and 1, such as 0.95")


def _numbers(rows: Sequence[float] | _Rows) -> _Rows:
    values = np.asarray(rows, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError("rows must be one finite number each: leave pairs without an outcome out")
    return values


def _shares(values: Sequence[float]) -> bool:
    array = _numbers(values)
    return bool(((array >= 0) & (array <= 1)).all())


def _paired(adapter: Sequence[float] | _Rows, base: Sequence[float] | _Rows) -> _Rows:
    if len(adapter) != len(base):
        raise ValueError(f"{len(adapter)} rows of the adapter, {len(base)} of the base")
    return _numbers(adapter) - _numbers(base)


def _groups(rows: _Rows, clusters: Sequence[Hashable]) -> npt.NDArray[np.int64]:
    """Index 0..G-1 of each row's cluster, in order of first appearance."""
    if len(rows) == 0:
        raise ValueError("no rows: nothing to estimate")
    if len(rows) != len(clusters):
        raise ValueError(f"{len(rows)} rows, {len(clusters)} cluster keys")
    index: dict[Hashable, int] = {}
    return np.array([index.setdefault(key, len(index)) for key in clusters], dtype=np.int64)


def _cr2(residuals: _Rows, groups: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Standard error of the mean and Bell-McCaffrey degrees of freedom (working model: iid)."""
    total = len(residuals)
    sizes = np.bincount(groups).astype(np.float64)
    if len(sizes) < 2:
        return math.nan, 0.0
    scale = 1.0 / (total * np.sqrt(1.0 - sizes / total))
    sums = np.bincount(groups, weights=residuals)
    error = float(np.sqrt(((scale * sums) ** 2).sum()))
    # Trace and Frobenius norm of diag(own) - outer(across, across), without the matrix.
    own, across = scale**2 * sizes, scale * sizes / math.sqrt(total)
    trace = own.sum() - (across**2).sum()
    norm = (own**2).sum() - 2 * (own * across**2).sum() + (across**2).sum() ** 2
    return error, float(trace**2 / norm)


@lru_cache(maxsize=8)
def _draws(clusters: int, seed: int) -> _Rows:
    """Bootstrap weights, resamples x clusters: how often each cluster was drawn. Don't write."""
    generator = np.random.default_rng(seed)
    draws = generator.multinomial(clusters, np.full(clusters, 1 / clusters), size=RESAMPLES)
    return draws.astype(np.float64)


def _percentiles(values: _Rows, level: float) -> Interval | None:
    if len(values) == 0:
        return None
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high))
