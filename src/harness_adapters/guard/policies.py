"""First policies: allow everything, or deny by pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_adapters.guard import ProposedCall
from harness_adapters.records import Decision, Verdict


class AllowAll:
    """Allows every call; the sandbox alone is the boundary."""

    bounded = True
    """See `proxy.judging`."""

    def judge(self, call: ProposedCall) -> Verdict:
        """Always allow."""
        return Verdict(Decision.ALLOW, "allow-all")


@dataclass(frozen=True, slots=True)
class DenyRule:
    """Block a call when `pattern` is found in any string of its arguments."""

    name: str
    pattern: re.Pattern[str]
    reason: str


@dataclass(frozen=True, slots=True)
class DenyPatterns:
    """Blocks by the first rule whose pattern is found; allows the rest."""

    rules: Sequence[DenyRule]

    def judge(self, call: ProposedCall) -> Verdict:
        """Look at the decoded strings, so that JSON escapes hide nothing, and at raw text."""
        texts = [call.arguments, *_strings(_decoded(call.arguments))]
        for rule in self.rules:
            if any(rule.pattern.search(text) for text in texts):
                return Verdict(Decision.BLOCK, rule.name, rule.reason)
        return Verdict(Decision.ALLOW, "no-pattern")


def _decoded(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return None


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
