import math
from collections.abc import Sequence

import numpy as np
import pytest
import statsmodels.api as statsmodels
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.linalg import inv, sqrtm

from harness_adapters import evaluation
from harness_adapters.evaluation.statistics import (
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


@pytest.mark.parametrize(("successes", "trials"), [(0, 12), (1, 3), (25, 60), (60, 60)])
def test_wilson_agrees_with_statsmodels(successes: int, trials: int) -> None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, trials, method="wilson")
    ours = wilson(successes, trials)
    assert ours.low == pytest.approx(low, abs=1e-12)
    assert ours.high == pytest.approx(high, abs=1e-12)


def test_pass_at_k_is_the_share_of_subsets_that_hold_a_success() -> None:
    assert pass_at_k(4, 1, 1) == pytest.approx(0.25)
    assert pass_at_k(4, 1, 2) == pytest.approx(0.5)
    assert pass_at_k(4, 2, 2) == pytest.approx(1 - 1 / 6)
    assert pass_at_k(5, 4, 2) == 1.0
    with pytest.raises(ValueError, match="pass@3"):
        pass_at_k(2, 1, 3)


def test_pass_at_k_is_unbiased() -> None:
    n, p, k = 6, 0.3, 3
    expected = sum(stats.binom.pmf(c, n, p) * pass_at_k(n, c, k) for c in range(n + 1))
    assert expected == pytest.approx(1 - (1 - p) ** k)


def test_equal_clusters_agree_with_statsmodels() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(0.2, 1, 60) + np.repeat(rng.normal(0, 1, 20), 3)
    clusters = np.repeat(np.arange(20), 3)
    fit = statsmodels.OLS(rows, np.ones((60, 1))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    ours = clustered_mean(rows.tolist(), clusters.tolist())
    assert ours.value == pytest.approx(float(fit.params[0]))
    assert ours.standard_error == pytest.approx(float(fit.bse[0]))
    assert ours.degrees_of_freedom == pytest.approx(19)
    low, high = fit.conf_int()[0]
    assert ours.interval is not None
    assert (ours.interval.low, ours.interval.high) == pytest.approx((low, high))


def test_single_rows_agree_with_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    base, treatment = rng.random(40), rng.random(40) + 0.1
    expected = stats.ttest_rel(treatment, base).confidence_interval()
    ours = clustered_mean((treatment - base).tolist(), range(40)).interval
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high))


def test_unequal_clusters_agree_with_cr2_by_matrices() -> None:
    """The general form: A_g = (I - H_gg)^(-1/2), degrees of freedom of Bell and McCaffrey."""
    rng = np.random.default_rng(2)
    sizes = [1, 2, 5, 3, 7, 1, 4]
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    n = len(clusters)
    rows = rng.normal(size=n) + rng.normal(size=len(sizes))[clusters]
    ones = np.ones((n, 1))
    hat = ones @ ones.T / n
    rest = np.eye(n) - hat
    residuals = rest @ rows
    variance, columns = 0.0, []
    for g in range(len(sizes)):
        own = clusters == g
        adjust = np.real(inv(sqrtm(np.eye(own.sum()) - hat[np.ix_(own, own)])))
        variance += float((ones[own].T @ adjust @ residuals[own] / n).item() ** 2)
        columns.append((rest[:, own] @ adjust @ ones[own] / n).ravel())
    moments = np.array(columns) @ np.array(columns).T
    ours = clustered_mean(rows.tolist(), clusters.tolist())
    assert ours.standard_error == pytest.approx(math.sqrt(variance))
    assert ours.degrees_of_freedom == pytest.approx(np.trace(moments) ** 2 / (moments**2).sum())


def test_bootstrap_agrees_with_scipy() -> None:
    rng = np.random.default_rng(3)
    rows = rng.random(50)
    expected = stats.bootstrap(
        (rows,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = clustered_mean(rows.tolist(), range(50)).bootstrap
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx((expected.low, expected.high), abs=0.006)


def test_bootstrap_is_reproducible() -> None:
    rows, clusters = [0.0, 1.0, 1.0, -1.0], ["a", "a", "b", "c"]
    assert clustered_mean(rows, clusters) == clustered_mean(rows, clusters)


def test_mcnemar_agrees_with_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    expected = mcnemar([[30, 6], [21, 15]], exact=True).pvalue
    assert mcnemar_exact(6, 21) == pytest.approx(float(expected))
    assert mcnemar_exact(0, 0) == 1.0


def test_discordance_counts_each_pair_once() -> None:
    table = discordance([True, True, False, False, False], [True, False, True, True, False])
    assert (table.both, table.only_base, table.only_treatment, table.neither) == (1, 1, 2, 1)


def test_no_difference_anywhere_is_not_certainty() -> None:
    estimate = paired_difference([1, 0, 1, 0], [1, 0, 1, 0], range(4))
    assert estimate.value == 0
    assert estimate.interval is not None
    assert estimate.interval.high == pytest.approx(wilson(0, 4).high)
    assert 0.0 in estimate.interval
    assert more_clusters_to_settle(estimate) is None


def test_clusters_that_each_cancel_out_are_not_certainty() -> None:
    """Two attempts per task, one won and one lost: every task's sum is 0, yet little is known."""
    estimate = paired_difference([0, 1] * 4, [1, 0] * 4, [i // 2 for i in range(8)])
    assert estimate.difference == 0
    assert (estimate.low, estimate.high) == (-wilson(0, 4).high, wilson(0, 4).high)


def test_the_result_names_what_is_quoted() -> None:
    found = evaluation.paired_difference(
        base=np.array([0, 1, 0, 0]), adapter=[True, True, False, True], cluster="aabc", level=0.9
    )
    assert (found.difference, found.n, found.clusters) == (0.5, 4, 3)
    assert found.interval is not None
    assert (found.low, found.high) == (found.interval.low, found.interval.high)
    assert found.bootstrap is None
    wider = paired_difference([0, 1, 0, 0], [1, 1, 0, 1], "aabc", 0.99)
    assert wider.low < found.low and found.high <= wider.high


def test_the_interval_of_counts_is_not_cut_to_shares() -> None:
    found = paired_difference([900, 1200, 800], [500, 400, 700], range(3))
    assert found.difference == pytest.approx(-1300 / 3)
    assert found.low < -433 < found.high


def test_bootstrap_and_analytic_interval_agree() -> None:
    rng = np.random.default_rng(10)
    task = np.repeat(np.arange(150), 4)
    chance = rng.random(150)[task]
    found = paired_difference(
        rng.random(600) < chance, rng.random(600) < chance + 0.1, task, bootstrap=True
    )
    assert found.bootstrap is not None
    assert (found.bootstrap.low, found.bootstrap.high) == pytest.approx(
        (found.low, found.high), abs=0.1 * (found.high - found.low)
    )


@pytest.mark.parametrize(
    ("base", "adapter", "cluster", "level", "message"),
    [
        ([1], [1, 0], [0, 1], 0.95, "2 rows of the adapter, 1 of the base"),
        ([1, 0], [1, 0], [0], 0.95, "2 rows, 1 cluster keys"),
        ([], [], [], 0.95, "no rows"),
        ([1, math.nan], [1, 0], [0, 1], 0.95, "finite"),
        ([1, None], [1, 0], [0, 1], 0.95, "finite"),
        ([1, 0], [1, 0], [0, 1], 95, "between 0 and 1"),
    ],
)
def test_what_is_no_experiment_is_refused(
    base: list[float], adapter: list[float], cluster: list[int], level: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        paired_difference(base, adapter, cluster, level)


def test_one_cluster_gives_no_interval() -> None:
    estimate = paired_difference([0, 0, 1], [1, 1, 1], ["a", "a", "a"])
    assert estimate.interval is None
    assert estimate.bootstrap is None
    assert (estimate.low, estimate.high) == (-math.inf, math.inf)
    assert minimum_detectable_effect(estimate) is None


def test_ratio_of_calls() -> None:
    base, treatment = [2, 4, 6, 4], [1, 2, 3, 2]
    ratio = paired_ratio(base, treatment, range(4))
    assert ratio is not None
    assert ratio.value == pytest.approx(0.5)
    assert ratio.interval is not None
    assert (ratio.interval.low, ratio.interval.high) == pytest.approx((0.5, 0.5))
    assert paired_ratio([0, 0], [1, 2], range(2)) is None
    nothing = paired_ratio([1, 2], [0, 0], range(2))
    assert nothing is not None
    assert nothing.value == 0
    assert nothing.interval is None


def test_how_many_more_tasks_settle_it_matches_simulation() -> None:
    """With that many tasks about 80% of experiments exclude 0."""
    rng = np.random.default_rng(4)
    first = rng.permutation([0.0] * 42 + [1.0] * 11 + [-1.0] * 7)
    estimate = clustered_mean(first.tolist(), range(60))
    assert estimate.interval is not None
    assert 0.0 in estimate.interval
    more = more_clusters_to_settle(estimate)
    assert more is not None
    total = 60 + more
    draws = rng.choice(first, size=(4000, total))
    errors = draws.std(axis=1, ddof=1) / math.sqrt(total)
    found = draws.mean(axis=1) > stats.t.ppf(0.975, total - 1) * errors
    assert found.mean() == pytest.approx(0.8, abs=0.03)


def test_minimum_detectable_effect_matches_statsmodels() -> None:
    from statsmodels.stats.power import TTestPower

    rng = np.random.default_rng(5)
    rows = rng.normal(size=80)
    ours = minimum_detectable_effect(clustered_mean(rows.tolist(), range(80)))
    expected = TTestPower().solve_power(nobs=80, alpha=0.05, power=0.8) * rows.std(ddof=1)
    assert ours == pytest.approx(expected, rel=0.01)


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 5)), min_size=2, max_size=40)
)
def test_paired_difference_is_antisymmetric_and_within_bounds(
    rows: list[tuple[bool, bool, int]],
) -> None:
    base, treatment, clusters = (list(column) for column in zip(*rows, strict=True))
    there = paired_difference(base, treatment, clusters)
    back = paired_difference(treatment, base, clusters)
    assert there.value == pytest.approx(-back.value)
    if there.interval is None or back.interval is None:
        assert len(set(clusters)) == 1
        return
    assert there.interval.low == pytest.approx(-back.interval.high, abs=1e-9)
    assert -1 <= there.interval.low <= there.value + 1e-9
    assert there.value - 1e-9 <= there.interval.high <= 1


def coverage(
    experiments: int, sizes: Sequence[int], *, by_task: bool = True, gain: float = 0.15
) -> float:
    """Share of simulated evaluations whose interval holds the true difference.

    `sizes`: attempts at each task. Tasks differ in difficulty and in how much the adapter helps, so
    attempts at one task are alike; the truth is the mean over all tasks there could be.
    """

    def chances(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        base = rng.beta(0.8, 0.8, count)
        return base, np.clip(base + rng.normal(gain, 0.3, count), 0, 1)

    base, adapter = chances(np.random.default_rng(7), 2_000_000)
    truth = float((adapter - base).mean())
    rng = np.random.default_rng(6)
    task = np.repeat(np.arange(len(sizes)), sizes)
    keys = task if by_task else np.arange(len(task))
    hits = 0
    for _ in range(experiments):
        base, adapter = chances(rng, len(sizes))
        found = paired_difference(
            rng.random(len(task)) < base[task],
            rng.random(len(task)) < adapter[task],
            keys,
        )
        hits += found.low <= truth <= found.high
    return hits / experiments


def test_coverage_over_ten_thousand_experiments() -> None:
    assert 0.93 <= coverage(10_000, [4] * 30) <= 0.97


def test_ignoring_clusters_covers_too_little() -> None:
    assert coverage(1000, [6] * 40, by_task=False) < 0.90


@pytest.mark.heavy
@pytest.mark.parametrize(
    "sizes",
    [
        [1] * 150,
        [4] * 150,
        [8] * 20,
        [4] * 8,
        [8] * 5,
        [1, 2, 3, 4, 5, 6, 8, 8, 1, 1, 2, 2, 3, 4, 10, 12],
        [1, 2, 8, 4, 12, 3],
    ],
)
def test_coverage(sizes: list[int]) -> None:
    assert 0.93 <= coverage(10_000, sizes) <= 0.97


@pytest.mark.heavy
def test_coverage_without_any_effect() -> None:
    assert 0.93 <= coverage(10_000, [2] * 60, gain=0.0) <= 0.97


@pytest.mark.heavy
def test_coverage_with_unequal_families() -> None:
    """Few clusters of very different sizes, with a shift of their own: the hard case."""
    rng = np.random.default_rng(9)
    sizes = [2, 3, 3, 4, 5, 6, 8, 8, 10, 12, 14, 15]
    keys = np.repeat(np.arange(len(sizes)), sizes)
    hits = 0
    for _ in range(10_000):
        shift = rng.normal(0, 0.15, len(sizes))[keys]
        chance = np.clip(0.5 + shift, 0, 1)
        found = paired_difference(np.full(len(keys), 0.5), rng.random(len(keys)) < chance, keys)
        hits += found.low <= 0 <= found.high
    assert 0.93 <= hits / 10_000 <= 0.97
