"""The one way from a proposed call to a verdict on record: the gateway's and the audit proxy's."""

from __future__ import annotations

from harness_adapters.guard import Policy, ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.records import Decision, Verdict
from harness_adapters.text import visible

GUARD_ERROR = "guard-error"
"""Rule of a call that is blocked because its policy broke."""

_SHOWN_NAME = 64


def decide(policy: Policy, call: ProposedCall) -> Verdict:
    """The policy's verdict; a block when it raises or answers with something else."""
    try:
        verdict = policy.judge(call)
        if not isinstance(verdict, Verdict) or not isinstance(verdict.decision, Decision):
            raise TypeError("a policy answered with something that is no verdict")
    except Exception as error:  # fail closed: a policy that breaks allows nothing
        return Verdict(Decision.BLOCK, GUARD_ERROR, one_line(error))
    return verdict


def judge(policy: Policy, audit: AuditLog, call: ProposedCall, call_id: str) -> Verdict:
    """Decide and write the line. Raises StoreError when it can't be written: no call may pass."""
    verdict = decide(policy, call)
    audit.append(call, call_id, verdict)
    return verdict


def notice(name: str, verdict: Verdict) -> str:
    """What a model reads in the place of a blocked call."""
    shown = visible(name, one_line=True)[:_SHOWN_NAME]
    return f"[{shown or 'The call'} was blocked and not run: {verdict.reason or verdict.rule}]"


def one_line(error: Exception) -> str:
    """An error for people: its kind and its text, 300 characters at most."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
