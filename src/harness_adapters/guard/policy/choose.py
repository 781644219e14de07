"""The policy that a setting names."""

from __future__ import annotations

from pathlib import Path

from harness_adapters.guard import Policy
from harness_adapters.guard.policies import AllowAll
from harness_adapters.guard.policy.judge import EffectPolicy
from harness_adapters.guard.policy.load import default_policy, load_policy


def policy_named(name: str) -> Policy:
    """`off`: all calls pass; `default`: the shipped rules; else a policy file.

    Raises ConfigError when the file is wrong.
    """
    if name == "off":
        return AllowAll()
    return EffectPolicy(default_policy() if name == "default" else load_policy(Path(name)))


def default() -> EffectPolicy:
    """The shipped rules, for a task of which only the working directory is known."""
    return EffectPolicy(default_policy())
