"""From scored rollouts to weighted rows: groups, advantages, normalisation, what is left out.

B scored rollouts. The loss of a step is a sum over tokens of weight * loss(advantage, ratio):
with `rollout` normalisation every scored rollout weighs the same (weight 1 / (B * its tokens)),
with `token` every token does (1 / all tokens), with `constant` every token too, but as if each
rollout had the same number of them (1 / (B * constant_tokens)): longer batches weigh more.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from harness_adapters.config import TrainSettings
from harness_adapters.learner.advantages import GroupKind, group_advantages, group_kind
from harness_adapters.learner.rows import Row, turns_to_rows
from harness_adapters.records import Rollout


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of rollouts with an advantage that isn't 0; `Row.rollout` indexes the two lists."""

    rows: list[Row]
    advantages: list[float]
    weights: list[float]
    """Of each token of a rollout."""
    signal: float
    """Mean |advantage| over scored rollouts."""
    metrics: dict[str, float]


def make_batch(rollouts: Sequence[Rollout], settings: TrainSettings, version: int) -> Batch:
    """Advantages within `Rollout.group`; `version` is the learner's, for staleness.

    A rollout counts towards its group's mean even if it's too stale to be trained.
    """
    ordered = sorted(rollouts, key=lambda r: (r.group, r.id))
    groups = [list(members) for _, members in groupby(ordered, key=lambda r: r.group)]
    kinds = dict.fromkeys(GroupKind, 0)
    stds: list[float] = []
    chosen: list[tuple[Rollout, float]] = []
    stale = 0
    for group in groups:
        kinds[group_kind([r.correct if r.reward is not None else None for r in group])] += 1
        rewards = [r.reward for r in group if r.reward is not None]
        stds += [statistics.stdev(rewards)] if len(rewards) > 1 else []
        advantages = group_advantages(
            [r.reward for r in group], settings.advantage, [r.correct for r in group]
        )
        for rollout, advantage in zip(group, advantages, strict=True):
            if advantage is None:
                continue
            if version - rollout.version > settings.max_staleness:
                stale += 1
                continue
            chosen.append((rollout, advantage))
    tokens = [sum(len(t.output_ids) for t in r.turns) for r, _ in chosen]
    live = [i for i, (_, advantage) in enumerate(chosen) if advantage != 0 and tokens[i]]
    shares: dict[str, Callable[[int], float]] = {
        "rollout": lambda i: 1 / (len(chosen) * tokens[i]),
        "token": lambda _: 1 / sum(tokens),
        "constant": lambda _: 1 / (len(chosen) * settings.constant_tokens),
    }
    weights = {i: shares[settings.normalisation](i) for i in live}
    rows = [
        row
        for number, i in enumerate(live)
        for row in turns_to_rows(chosen[i][0].turns, rollout=number)
    ]
    scored = [r for r in rollouts if r.reward is not None]
    metrics = {
        **{f"groups/{kind.value}": float(count) for kind, count in kinds.items()},
        "rollouts/scored": float(len(scored)),
        "rollouts/unscored": float(len(rollouts) - len(scored)),
        "rollouts/stale": float(stale),
        "rollouts/trained": float(len(live)),
        "frac_reward_zero_std": sum(s < 1e-8 for s in stds) / len(stds) if stds else 0.0,
        "reward_std": statistics.fmean(stds) if stds else 0.0,
        "tokens/raw": float(
            sum(len(t.prompt_ids) + len(t.output_ids) for i in live for t in chosen[i][0].turns)
        ),
    }
    if scored:
        metrics |= _scored_metrics(scored, version)
    signal = statistics.fmean(abs(a) for _, a in chosen) if chosen else 0.0
    return Batch(
        rows=rows,
        advantages=[chosen[i][1] for i in live],
        weights=[weights[i] for i in live],
        signal=signal,
        metrics=metrics | {"signal": signal},
    )


def _scored_metrics(scored: Sequence[Rollout], version: int) -> dict[str, float]:
    lengths = [sum(len(t.output_ids) for t in r.turns) for r in scored]
    truncated = sum(any(t.finish == "length" for t in r.turns) for r in scored)
    return {
        "reward": statistics.fmean(r.reward for r in scored if r.reward is not None),
        "correct": statistics.fmean(bool(r.correct) for r in scored),
        "completions/mean_length": statistics.fmean(lengths),
        "completions/min_length": float(min(lengths)),
        "completions/max_length": float(max(lengths)),
        "completions/clipped_ratio": truncated / len(scored),
        "tools/call_frequency": statistics.fmean(r.calls for r in scored),
        "turns/mean": statistics.fmean(len(r.turns) for r in scored),
        "staleness/mean": statistics.fmean(version - r.version for r in scored),
    }
