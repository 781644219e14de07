"""A policy from what was said on the command line."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from harness_adapters.errors import ConfigError
from harness_adapters.guard import Policy
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.guard.policy import policy_named


def load_policy(place: str | None, patterns: Sequence[str]) -> Policy:
    """The shipped rules, unless `place` or `patterns` say another.

    `place` is what the setting `guard.policy` takes (`default`, `off`, a policy file) or
    `MODULE:NAME`, where NAME is a policy, or something to call without arguments that gives one;
    modules of the current directory are found, too. With `patterns` alone it blocks by these.
    Raises ConfigError.
    """
    if patterns and place is not None:
        raise ConfigError("--policy and --deny: give one of them")
    if patterns:
        return DenyPatterns([_rule(pattern) for pattern in patterns])
    if place is None or place.endswith(".toml") or ":" not in place:
        return policy_named(place or "default")
    module, _, name = place.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
        policy = found if hasattr(found, "judge") and not isinstance(found, type) else found()
    except Exception as error:  # any module may raise anything
        raise ConfigError(f"--policy {place}: {type(error).__name__}: {error}") from None
    if not hasattr(policy, "judge"):
        raise ConfigError(f"--policy {place}: it has no method `judge`")
    result: Policy = policy
    return result


def _rule(pattern: str) -> DenyRule:
    try:
        return DenyRule("deny", re.compile(pattern), f"{pattern} is not allowed")
    except re.error as error:
        raise ConfigError(f"--deny {pattern!r}: {error}") from None
