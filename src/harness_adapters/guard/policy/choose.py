"""The policy that a setting or an option of the command line names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from harness_adapters.errors import ConfigError
from harness_adapters.guard import Policy
from harness_adapters.guard.policies import AllowAll
from harness_adapters.guard.policy.judge import EffectPolicy
from harness_adapters.guard.policy.load import default_policy, load_policy


def policy_named(name: str, *, enforced: bool = True) -> Policy:
    """`off`: all calls pass; `default`: the shipped rules; else a policy file.

    `enforced` says whether blocked calls are kept back (`EffectPolicy`). Raises ConfigError when
    the file is wrong.
    """
    if name == "off":
        return AllowAll()
    rules = default_policy() if name == "default" else load_policy(Path(name))
    return EffectPolicy(rules, enforced=enforced)


def policy_of_code(place: str) -> Policy:
    """`MODULE:NAME`, a policy, or something to call without arguments that gives one.

    Modules of the current directory are found, too. It runs code, so no setting of a run may come
    here: run directories are passed on. Raises ConfigError.
    """
    module, _, name = place.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
        policy = found if hasattr(found, "judge") and not isinstance(found, type) else found()
    except Exception as error:  # any module may raise anything
        raise ConfigError(f"policy {place}: {type(error).__name__}: {error}") from None
    if not hasattr(policy, "judge"):
        raise ConfigError(f"policy {place}: it has no method `judge`")
    result: Policy = policy
    return result
