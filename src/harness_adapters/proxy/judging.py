"""Verdicts for a stream: the gateway's judging, with limits of time and size around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness_adapters.guard import Policy, ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.judging import AT_ONCE, decide, decide_in_time, notice
from harness_adapters.records import Decision, Verdict

INCOMPLETE = "guard-incomplete"
"""A call of which the end never came."""
UNREADABLE = "guard-unreadable"
OVERSIZE = "guard-oversize"


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it stood in an answer."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Ruling:
    """What becomes of a call."""

    passes: bool
    notice: str
    """Stands in the answer when the call doesn't."""


class Bench(Protocol):
    """Judges the calls of one answer. Whatever it raises, the call must not pass."""

    async def judge(self, call: Call) -> Ruling:
        """Decide and put on record. Raises StoreError when the record can't be written."""
        ...

    def refuse(self, call: Call, rule: str, reason: str) -> Ruling:
        """Put on record a call that no policy needs to see. Raises StoreError."""
        ...


async def ruling_on(bench: Bench, call: Call, max_call: int) -> Ruling:
    """The bench's ruling on a whole call; one of more than `max_call` characters is refused."""
    if len(call.arguments) > max_call:
        reason = f"its arguments are longer than {max_call} characters"
        return bench.refuse(call, OVERSIZE, reason)
    return await bench.judge(call)


@dataclass(frozen=True, slots=True)
class Judging:
    """What all answers of a proxy are judged with."""

    policy: Policy
    """One with an attribute `bounded` that is true always comes to a verdict by itself: short
    calls are judged without the way to another thread, which takes as long as most verdicts."""
    audit: AuditLog
    log_only: bool = False
    """Verdicts go on record and change nothing; what can't be judged is refused all the same."""
    seconds: float = 5.0
    """For one verdict; a policy that takes longer blocks the call."""


@dataclass(frozen=True, slots=True)
class AnswerBench:
    """The bench of one answer, which says where its calls come from."""

    judging: Judging
    session: str
    harness: str
    turn: int
    workdir: str

    async def judge(self, call: Call) -> Ruling:
        """See `Bench`."""
        proposed = self._proposed(call)
        judging = self.judging
        if len(call.arguments) <= AT_ONCE and getattr(judging.policy, "bounded", False):
            verdict = decide(judging.policy, proposed)
        else:
            verdict = await decide_in_time(judging.policy, proposed, judging.seconds)
        judging.audit.append(proposed, call.id, verdict, enforced=not judging.log_only)
        blocked = verdict.decision is Decision.BLOCK and not judging.log_only
        return Ruling(not blocked, notice(call.name, verdict))

    def refuse(self, call: Call, rule: str, reason: str) -> Ruling:
        """See `Bench`."""
        verdict = Verdict(Decision.BLOCK, rule, reason)
        self.judging.audit.append(self._proposed(call), call.id, verdict)
        return Ruling(False, notice(call.name, verdict))

    def _proposed(self, call: Call) -> ProposedCall:
        return ProposedCall(
            session=self.session,
            task="",
            harness=self.harness,
            turn=self.turn,
            name=call.name,
            arguments=call.arguments,
            workdir=self.workdir,
        )
