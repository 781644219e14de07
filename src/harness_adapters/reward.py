"""Reward of one rollout: validator score plus a small bonus for few tool calls."""

from __future__ import annotations


def reward(score: float, calls: int, *, bonus: float = 0.1, call_budget: int = 15) -> float:
    """R = v + bonus * max(0, 1 - calls / call_budget); the bonus only where v = 1.

    `score` v is the verifier's in [0, 1]. A bonus of 0.3 was found to hurt accuracy in the
    harness-adapters ablation of November 2026; 0.1 cuts 11-17% of the calls at no loss.
    """
    if not 0.0 <= score <= 1.0:
        raise ValueError(f"score {score} is outside [0, 1]")
    if score < 1.0:
        return score
    return score + bonus * max(0.0, 1.0 - calls / call_budget)
