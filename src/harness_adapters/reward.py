"""Reward of one rollout: validator score plus a small bonus for few tool calls."""

from __future__ import annotations


def reward(
    score: float,
    calls: int,
    *,
    bonus: float = 0.1,
    call_budget: int = 15,
    faults: int = 0,
    fault_cost: float = 0.0,
) -> float:
    """R = v + bonus * max(0, 1 - calls / call_budget) - fault_cost * faults, at least 0.

    The bonus only where v = 1. `faults` are blocked and malformed calls, which `calls` counts, too.
    Below 0 a session that tried and failed would be worth less than one that did nothing.

    `score` v is the verifier's in [0, 1]. A bonus of 0.3 was found to hurt accuracy in the
    harness-adapters ablation of November 2026; 0.1 cuts 11-17% of the calls at no loss.
    """
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"score {score} is outside [0, 1]")
    if score == 1.0:
        score += bonus * max(0.0, 1.0 - calls / call_budget)
    return max(0.0, score - fault_cost * faults)
