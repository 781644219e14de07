"""Policy-gradient losses on sampled tokens, and what they are watched by.

With r = exp(logp - logp_sampled), the importance ratio against the engine that sampled:

`cispo`  -min(r, cap).detach() * A * logp   (MiniMax-M1, arXiv 2506.13585)
`grpo`   -min(r * A, clip(r, 1 - low, 1 + high) * A)   (PPO's clip, arXiv 1707.06347)
`dapo`   the same with the upper side further away (arXiv 2503.14476)
`gspo`   the same, with one ratio for all sampled tokens of a rollout, their geometric mean, and
         sides very near to 1 (arXiv 2507.18071). It is written token by token: the rollout's ratio
         without gradient times exp(logp - logp.detach()), which has its value and its gradient.

Tokens whose ratio left [ratio_min, ratio_max] are masked: sampler and trainer disagree on them.
With `ratio_mask = "rollout"` it is the rollout's ratio that is looked at, and all its tokens go.
With `beta` > 0 every token adds beta * (exp(d) - d - 1), d = logp_base - logp: an estimate of the
divergence from the model without its adapter that is never negative (Schulman's k3, as in GRPO,
arXiv 2402.03300).
Names of losses and metrics are TRL's. M terms of one micro-batch.
"""

# ruff: noqa: N803 - capital suffixes are array shapes

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import torch

Tensor: TypeAlias = torch.Tensor

LossName: TypeAlias = Literal["cispo", "grpo", "dapo", "gspo"]
RatioMask: TypeAlias = Literal["token", "rollout", "none"]

EPSILONS: dict[LossName, tuple[float, float]] = {
    "cispo": (0.2, 0.2),  # only for the metrics
    "grpo": (0.2, 0.2),
    "dapo": (0.2, 0.28),
    "gspo": (3e-4, 4e-4),
}
"""Low and high side of the clip, as published."""
MAX_LOG_RATIO = 20.0
"""exp() of more than this says nothing that the mask doesn't."""


@dataclass(frozen=True, slots=True)
class LossSettings:
    """See `config.TrainSettings`."""

    name: LossName = "cispo"
    ratio_mask: RatioMask = "token"
    ratio_min: float = 0.125
    ratio_max: float = 8.0
    ratio_cap: float = 4.0
    epsilon_low: float | None = None
    epsilon_high: float | None = None
    """None: as published for the loss."""
    beta: float = 0.0

    @property
    def clip(self) -> tuple[float, float]:
        """Smallest and largest ratio inside the clip."""
        low, high = EPSILONS[self.name]
        low = low if self.epsilon_low is None else self.epsilon_low
        high = high if self.epsilon_high is None else self.epsilon_high
        return 1 - low, 1 + high

    @property
    def needs_rollout_ratios(self) -> bool:
        """Whether log-probabilities of whole rollouts are needed before the first gradient."""
        return self.name == "gspo" or self.ratio_mask == "rollout"


@dataclass(slots=True)
class TokenStatistics:
    """Sums over the terms of a step."""

    terms: int = 0
    loss: float = 0.0
    sums: dict[str, float] = field(default_factory=dict[str, float])
    minima: dict[str, float] = field(default_factory=dict[str, float])
    maxima: dict[str, float] = field(default_factory=dict[str, float])

    def add(self, values: dict[str, Tensor]) -> None:
        """Take in per-term values, each [M]."""
        for name, value in values.items():
            value = value.float()
            self.sums[name] = self.sums.get(name, 0.0) + float(value.sum())
            self.minima[name] = min(self.minima.get(name, float("inf")), float(value.min()))
            self.maxima[name] = max(self.maxima.get(name, float("-inf")), float(value.max()))

    @classmethod
    def sum_of(cls, parts: Iterable[TokenStatistics]) -> TokenStatistics:
        """Of all terms of the parts."""
        total = cls()
        for part in parts:
            total.terms += part.terms
            total.loss += part.loss
            for name, value in part.sums.items():
                total.sums[name] = total.sums.get(name, 0.0) + value
                total.minima[name] = min(total.minima.get(name, math.inf), part.minima[name])
                total.maxima[name] = max(total.maxima.get(name, -math.inf), part.maxima[name])
        return total

    def metrics(self) -> dict[str, float]:
        """Means, minima and maxima over tokens, under TRL's names.

        `kl` is measured against the policy that sampled (r - 1 - log r), `kl_base` against the
        model without its adapter, where that was asked for.
        """
        if not self.terms:
            return {}
        mean = {name: total / self.terms for name, total in self.sums.items()}
        base = {"kl_base": mean["kl_base"]} if "kl_base" in mean else {}
        return base | {
            "loss": self.loss,
            "kl": mean["kl"],
            "entropy": mean["entropy"],
            "clip_ratio/low_mean": mean["low"],
            "clip_ratio/high_mean": mean["high"],
            "clip_ratio/region_mean": mean["region"],
            "cispo_clip_ratio": mean["capped"],
            "sampling/importance_sampling_ratio/mean": mean["ratio"],
            "sampling/importance_sampling_ratio/min": self.minima["ratio"],
            "sampling/importance_sampling_ratio/max": self.maxima["ratio"],
            "sampling/sampling_logp_difference/mean": mean["difference"],
            "sampling/sampling_logp_difference/max": self.maxima["difference"],
            "sampling/masked_ratio": mean["masked"],
        }


def policy_loss(
    settings: LossSettings,
    *,
    logprobs_M: Tensor,
    old_logprobs_M: Tensor,
    advantages_M: Tensor,
    weights_M: Tensor,
    entropy_M: Tensor,
    rollout_log_ratio_M: Tensor | None = None,
    base_logprobs_M: Tensor | None = None,
    statistics: TokenStatistics | None = None,
) -> Tensor:
    """Sum over terms of weight * loss; the weights hold the normalisation. Fills `statistics`.

    `rollout_log_ratio_M`, the mean of a rollout's log ratios at each of its terms, is needed where
    `settings.needs_rollout_ratios`; `base_logprobs_M`, the model's without
    its adapter, where `settings.beta` > 0.
    """
    log_ratio = logprobs_M - old_logprobs_M
    ratio = log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    fixed = ratio.detach()
    ratios = looked_at = fixed
    if rollout_log_ratio_M is not None:
        of_rollout = rollout_log_ratio_M.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        looked_at = of_rollout if settings.ratio_mask == "rollout" else fixed
        if settings.name == "gspo":
            ratio = of_rollout * (logprobs_M - logprobs_M.detach()).exp()
            fixed = of_rollout
    kept = (looked_at >= settings.ratio_min) & (looked_at <= settings.ratio_max)
    if settings.ratio_mask == "none":
        kept = torch.ones_like(kept)
    low, high = settings.clip
    if settings.name == "cispo":
        per_token = -fixed.clamp(max=settings.ratio_cap) * advantages_M * logprobs_M
    else:
        clipped = ratio.clamp(low, high)
        per_token = -torch.minimum(ratio * advantages_M, clipped * advantages_M)
    # where, not a product: a masked term may be infinite
    loss = torch.where(kept, per_token * weights_M, torch.zeros_like(per_token)).sum()
    divergence: dict[str, Tensor] = {}
    if base_logprobs_M is not None:
        behind = (base_logprobs_M - logprobs_M).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)
        kl_base = behind.exp() - behind - 1
        loss = loss + settings.beta * (kl_base * weights_M).sum()
        divergence["kl_base"] = kl_base.detach()
    if statistics is not None:
        with torch.no_grad():
            below = (fixed < low) & (advantages_M < 0)
            above = (fixed > high) & (advantages_M > 0)
            statistics.terms += len(fixed)
            statistics.loss += float(loss.detach())
            statistics.add(
                {
                    "ratio": ratios,
                    "kl": ratios - 1 - log_ratio,
                    "difference": log_ratio.abs(),
                    "entropy": entropy_M,
                    "low": below,
                    "high": above,
                    "region": below | above,
                    "capped": (fixed > settings.ratio_cap) & (advantages_M > 0),
                    "masked": ~kept,
                }
                | divergence
            )
    return loss
