"""Losses against values computed by hand and formulas written out anew."""

from __future__ import annotations

import math

import pytest
import torch

from harness_adapters.learner.losses import LossSettings, TokenStatistics, policy_loss


def run(
    settings: LossSettings,
    new: list[float],
    old: list[float],
    advantages: list[float],
    base: list[float] | None = None,
    of_rollout: list[float] | None = None,
) -> tuple[float, list[float], dict[str, float]]:
    logprobs = torch.tensor(new, requires_grad=True)
    statistics = TokenStatistics()
    loss = policy_loss(
        settings,
        logprobs_M=logprobs,
        old_logprobs_M=torch.tensor(old),
        advantages_M=torch.tensor(advantages),
        weights_M=torch.full((len(new),), 1 / len(new)),
        entropy_M=torch.ones(len(new)),
        base_logprobs_M=None if base is None else torch.tensor(base),
        rollout_log_ratio_M=None if of_rollout is None else torch.tensor(of_rollout),
        statistics=statistics,
    )
    loss.backward()
    return float(loss.detach()), logprobs.grad.tolist(), statistics.metrics()


def test_cispo_by_hand() -> None:
    # ratios 1, 2 (under the cap), 5 (over the cap of 4)
    old = [-1.0, -1.0 - math.log(2), -1.0 - math.log(5)]
    loss, grad, metrics = run(LossSettings(), [-1.0] * 3, old, [0.5, -0.5, 1.0])
    assert loss == pytest.approx((0.5 * 1 - 2 * 0.5 + 4 * 1.0) / 3, abs=1e-5)
    assert grad == pytest.approx([-0.5 / 3, 1.0 / 3, -4.0 / 3], abs=1e-5)
    assert metrics["cispo_clip_ratio"] == pytest.approx(1 / 3)
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(5, abs=1e-4)
    assert metrics["sampling/importance_sampling_ratio/min"] == pytest.approx(1)
    assert metrics["sampling/importance_sampling_ratio/mean"] == pytest.approx(8 / 3, abs=1e-4)
    logs = math.log(2) + math.log(5)
    assert metrics["sampling/sampling_logp_difference/mean"] == pytest.approx(logs / 3, abs=1e-5)
    assert metrics["kl"] == pytest.approx((1 + 4 - logs) / 3, abs=1e-4)
    assert metrics["entropy"] == 1
    assert metrics["loss"] == pytest.approx(loss)


def test_grpo_clips_where_ppo_does() -> None:
    # ratios 1.5 and 0.5 with either sign of the advantage; gradients vanish where clipped
    old = [-math.log(1.5), math.log(2), -math.log(1.5), math.log(2)]
    loss, grad, metrics = run(LossSettings(name="grpo"), [0.0] * 4, old, [1.0, 1.0, -1.0, -1.0])
    assert loss == pytest.approx(-(1.2 + 0.5 - 1.5 - 0.8) / 4, abs=1e-5)
    assert grad == pytest.approx([0, -0.5 / 4, 1.5 / 4, 0], abs=1e-5)
    assert metrics["clip_ratio/high_mean"] == 0.25
    assert metrics["clip_ratio/low_mean"] == 0.25
    assert metrics["clip_ratio/region_mean"] == 0.5


def test_dapo_clips_further_up() -> None:
    old = [-math.log(1.25), -math.log(1.4), math.log(2)]
    loss, grad, _ = run(LossSettings(name="dapo"), [0.0] * 3, old, [1.0, 1.0, -1.0])
    assert loss == pytest.approx(-(1.25 + 1.28 - 0.8) / 3, abs=1e-5)
    assert grad == pytest.approx([-1.25 / 3, 0, 0], abs=1e-5)
    narrow = LossSettings(name="dapo", epsilon_low=0.6, epsilon_high=0.1)
    assert run(narrow, [0.0] * 3, old, [1.0, 1.0, -1.0])[1] == pytest.approx([0, 0, 0.5 / 3])


def test_gspo_by_hand() -> None:
    # Two rollouts of two tokens. Ratios 1.2 and 0.8334: geometric mean 1.0001, inside the clip;
    # 1.2 and 1.2: outside, but only where the advantage is positive.
    inside, outside = math.log(1.0001), math.log(1.2)
    old = [-outside, outside - 2 * inside, -outside, -outside]
    for sign in (1.0, -1.0):
        loss, grad, metrics = run(
            LossSettings(name="gspo"),
            [0.0] * 4,
            old,
            [sign] * 4,
            of_rollout=[inside, inside, outside, outside],
        )
        second = 1.0004 if sign > 0 else 1.2
        assert loss == pytest.approx(-sign * (1.0001 + second) / 2, abs=1e-5)
        slope = 0.0 if sign > 0 else 1.2 / 4
        assert grad == pytest.approx([-sign * 1.0001 / 4] * 2 + [slope] * 2, abs=1e-5)
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(1.2, abs=1e-4)


def test_a_rollout_is_masked_as_a_whole_or_nothing_is() -> None:
    new, old = [-1.0] * 3, [-1.0, -4.0, -1.0]  # ratios 1, 20, 1
    of_rollout = [1.5, 1.5, 0.0]  # means of the log ratios of two rollouts; e^1.5 = 4.5
    whole = LossSettings(ratio_mask="rollout", ratio_max=4.0, ratio_cap=100.0)
    grad, metrics = run(whole, new, old, [1.0] * 3, of_rollout=of_rollout)[1:]
    assert grad == pytest.approx([0, 0, -1 / 3])
    assert metrics["sampling/masked_ratio"] == pytest.approx(2 / 3)
    grad = run(LossSettings(ratio_mask="none", ratio_cap=100.0), new, old, [1.0] * 3)[1]
    assert grad == pytest.approx([-1 / 3, -math.exp(3) / 3, -1 / 3])


@pytest.mark.parametrize("name", ["cispo", "grpo"])
def test_against_the_formula_written_out(name: str) -> None:
    generator = torch.Generator().manual_seed(3)
    new = (-3 * torch.rand(50, generator=generator)).tolist()
    old = (-3 * torch.rand(50, generator=generator)).tolist()
    advantages = torch.randn(50, generator=generator).tolist()
    expected = 0.0
    for n, o, a in zip(new, old, advantages, strict=True):
        r = math.exp(n - o)
        if not 0.125 <= r <= 8:
            continue
        if name == "cispo":
            expected -= min(r, 4.0) * a * n / 50
        else:
            expected -= min(r * a, max(min(r, 1.2), 0.8) * a) / 50
    settings = LossSettings(name=name)  # type: ignore[arg-type]  # parametrised
    assert run(settings, new, old, advantages)[0] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ["cispo", "grpo"])
def test_tokens_on_which_the_sampler_disagrees_are_masked(name: str) -> None:
    settings = LossSettings(name=name)  # type: ignore[arg-type]  # parametrised
    new, old = [-1.0, -0.1, -90.0], [-1.0, -9.0, -0.1]
    loss, grad, metrics = run(settings, new, old, [1.0, 1.0, -1.0])
    assert grad == pytest.approx([-1 / 3, 0, 0])
    assert metrics["sampling/masked_ratio"] == pytest.approx(2 / 3)
    assert math.isfinite(loss)


def test_on_policy_both_losses_are_the_policy_gradient() -> None:
    new, advantages = [-0.3, -2.0, -1.0], [0.7, -0.2, 0.1]
    expected = [-a / 3 for a in advantages]
    for name in ("cispo", "grpo"):
        settings = LossSettings(name=name)  # type: ignore[arg-type]  # loop over the literals
        assert run(settings, new, new, advantages)[1] == pytest.approx(expected)


def test_statistics_add_up_over_micro_batches() -> None:
    whole, parts = TokenStatistics(), TokenStatistics()
    new, old = torch.tensor([-1.0, -2.0, -0.5]), torch.tensor([-1.5, -1.0, -0.5])
    for statistics, slices in ((whole, [slice(0, 3)]), (parts, [slice(0, 1), slice(1, 3)])):
        for part in slices:
            policy_loss(
                LossSettings(),
                logprobs_M=new[part],
                old_logprobs_M=old[part],
                advantages_M=torch.ones(3)[part],
                weights_M=torch.ones(3)[part],
                entropy_M=torch.zeros(3)[part],
                statistics=statistics,
            )
    assert parts.metrics() == pytest.approx(whole.metrics())
    assert TokenStatistics().metrics() == {}


@pytest.mark.parametrize("name", ["cispo", "grpo"])
def test_divergence_from_the_base_by_hand(name: str) -> None:
    # d = log 2 and -log 4: exp(d) - d - 1 = 1 - log 2 and log 4 - 3/4; slopes 1 - exp(d)
    new, base = [-1.0, -1.0], [-1.0 + math.log(2), -1.0 - math.log(4)]
    settings = LossSettings(name=name, beta=0.5)  # type: ignore[arg-type]  # parametrised
    loss, grad, metrics = run(settings, new, new, [0.0, 0.0], base)
    assert loss == pytest.approx(0.5 * ((1 - math.log(2)) + (math.log(4) - 0.75)) / 2, abs=1e-6)
    assert grad == pytest.approx([0.5 * (1 - 2) / 2, 0.5 * (1 - 1 / 4) / 2], abs=1e-6)
    assert metrics["kl_base"] == pytest.approx(loss / 0.5, abs=1e-6)
    pushed = run(settings, new, new, [1.0, -2.0], base)
    alone = run(LossSettings(name=name), new, new, [1.0, -2.0])  # type: ignore[arg-type]
    assert pushed[1] == pytest.approx([a + b for a, b in zip(alone[1], grad, strict=True)])
    assert "kl_base" not in alone[2]


def test_tokens_that_the_ratio_masks_still_feel_the_base() -> None:
    grad = run(LossSettings(beta=1.0), [-1.0], [-9.0], [1.0], [-2.0])[1]
    assert grad == pytest.approx([1 - math.exp(-1)], abs=1e-6)
