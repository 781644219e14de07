"""The one way from a proposed call to a verdict on record: the gateway's and the audit proxy's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from harness_adapters.guard import Policy, ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.workers import run_in_worker
from harness_adapters.records import Decision, Verdict
from harness_adapters.text import visible

GUARD_ERROR = "guard-error"
"""Rule of a call that is blocked because its policy broke."""

TIMED_OUT = "guard-timeout"
"""Rule of a call that is blocked because no verdict came in time."""

_SHOWN_NAME = 64
AT_ONCE = 2_000
"""Characters of arguments that are judged where they come in: shorter than the way to a thread."""


def decide(policy: Policy, call: ProposedCall) -> Verdict:
    """The policy's verdict; a block when it raises or answers with something else."""
    try:
        verdict = policy.judge(call)
        if not isinstance(verdict, Verdict) or not isinstance(verdict.decision, Decision):
            raise TypeError("a policy answered with something that is no verdict")
    except Exception as error:  # fail closed: a policy that breaks allows nothing
        return Verdict(Decision.BLOCK, GUARD_ERROR, one_line(error))
    return verdict


async def decide_in_time(policy: Policy, call: ProposedCall, seconds: float) -> Verdict:
    """The verdict, from another thread; a block when it takes longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await run_in_worker(lambda: decide(policy, call))
    except TimeoutError:
        return Verdict(Decision.BLOCK, TIMED_OUT, f"no verdict within {seconds:g} seconds")


async def judge(
    policy: Policy,
    audit: AuditLog,
    call: ProposedCall,
    call_id: str,
    *,
    enforced: bool = True,
    seconds: float = 10.0,
) -> Verdict:
    """Decide and write the line. Raises StoreError when it can't be written: no call may pass.

    Where verdicts only go on record (`enforced=False`), a block becomes a flag: the call passes.
    """
    if len(call.arguments) <= AT_ONCE:
        verdict = decide(policy, call)
    else:
        verdict = await decide_in_time(policy, call, seconds)
    audit.append(call, call_id, verdict, enforced=enforced)
    if not enforced and verdict.decision is Decision.BLOCK:
        return replace(verdict, decision=Decision.FLAG)
    return verdict


def notice(name: str, verdict: Verdict) -> str:
    """What a model reads in the place of a blocked call."""
    shown = visible(name, one_line=True)[:_SHOWN_NAME]
    return f"[{shown or 'The call'} was blocked and not run: {verdict.reason or verdict.rule}]"


def one_line(error: Exception) -> str:
    """An error for people: its kind and its text, 300 characters at most."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
