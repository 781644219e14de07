"""Reading a policy file, and holding it to its own examples."""

from __future__ import annotations

import json
import tomllib
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from harness_adapters.errors import ConfigError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.policy.rules import Example, PolicyFile, TaskRules
from harness_adapters.records import Decision

_EXAMPLE_TASK = TaskRules(packages=("calc",))


def load_policy(path: Path) -> PolicyFile:
    """A policy file, its examples checked. Raises ConfigError with one line."""
    try:
        text = path.read_text()
    except OSError as error:
        raise ConfigError(f"policy {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"policy {path}: not UTF-8 text") from None
    return parse_policy(text, str(path))


@lru_cache(maxsize=1)
def default_policy() -> PolicyFile:
    """The rules that are shipped."""
    text = (files("harness_adapters.guard.policy") / "defaults.toml").read_text()
    return parse_policy(text, "defaults.toml")


def parse_policy(text: str, name: str) -> PolicyFile:
    """A policy from TOML. Raises ConfigError with one line that says where it is wrong."""
    try:
        policy = PolicyFile.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"policy {name}: not TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"policy {name}: {place}: {first['msg']}") from None
    _check_names(policy, name)
    _check_examples(policy, name)
    return policy


def _check_names(policy: PolicyFile, name: str) -> None:
    seen: set[str] = set()
    for rule in policy.rule:
        if rule.name in seen:
            raise ConfigError(f"policy {name}: two rules are named {rule.name}")
        seen.add(rule.name)
        for pattern in rule.content:
            import re

            try:
                re.compile(pattern)
            except re.error as error:
                raise ConfigError(
                    f"policy {name}: rule {rule.name}: content {pattern!r} is no regular "
                    f"expression: {error}"
                ) from None


def _check_examples(policy: PolicyFile, name: str) -> None:
    from harness_adapters.guard.policy.judge import EffectPolicy

    judge = EffectPolicy(policy, task=_EXAMPLE_TASK)
    for rule in policy.rule:
        for example in rule.must_block:
            verdict = judge.judge(_call(example))
            judge.forget("example")
            if (verdict.decision, verdict.rule) != (rule.decision, rule.name):
                raise ConfigError(
                    f"policy {name}: rule {rule.name}: must_block {_shown(example)} got "
                    f"{verdict.decision} by {verdict.rule}"
                )
        for example in rule.must_allow:
            verdict = judge.judge(_call(example))
            judge.forget("example")
            if verdict.decision is not Decision.ALLOW:
                raise ConfigError(
                    f"policy {name}: rule {rule.name}: must_allow {_shown(example)} got "
                    f"{verdict.decision} by {verdict.rule}"
                )


def _call(example: Example) -> ProposedCall:
    return ProposedCall(
        session="example",
        task="example",
        harness="",
        turn=0,
        name=example.tool,
        arguments=json.dumps(example.arguments),
        workdir=_EXAMPLE_TASK.workdir,
    )


def _shown(example: Example) -> str:
    text = json.dumps(example.arguments.get("command", example.arguments))
    return text if len(text) <= 80 else text[:77] + "..."
