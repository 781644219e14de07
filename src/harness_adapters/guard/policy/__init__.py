"""Policy: named rules over effects, read from TOML, and the judge that applies them.

rules.py       the models of a policy file
load.py        reading one, and checking the examples in it
match.py       whether a rule meets an effect
judge.py       `EffectPolicy`: sessions, harnesses, verdicts
choose.py      the policy that a setting or an option names
repair.py      calls as agents mend them
defaults.toml  the rules that are shipped
"""

from __future__ import annotations

from harness_adapters.guard.policy.choose import policy_named, policy_of_code
from harness_adapters.guard.policy.judge import EffectPolicy
from harness_adapters.guard.policy.load import default_policy, load_policy
from harness_adapters.guard.policy.rules import PolicyFile, Rule, TaskRules

__all__ = [
    "EffectPolicy",
    "PolicyFile",
    "Rule",
    "TaskRules",
    "default_policy",
    "load_policy",
    "policy_named",
    "policy_of_code",
]
