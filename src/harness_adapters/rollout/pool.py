"""Many sessions at once: bounded concurrency, retries of infrastructure failures, resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from harness_adapters.errors import EngineError, HarnessError
from harness_adapters.records import Rollout, SessionEnd
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.share import FairShare, Share

MAX_ATTEMPTS = 3
"""A session whose infrastructure failed is run again so often before its failure is kept."""

GIVE_UP_AFTER = 12
"""So many infrastructure failures in a row end the run: the machine is broken, not a session."""


class Runs(Protocol):
    """Whatever turns a plan into a rollout: a SessionRunner or an Oracle."""

    async def run(self, plan: SessionPlan) -> Rollout:
        """Run one session to its end."""
        ...


class Pool:
    """Runs sessions, at most `concurrency` at a time over all calls of `run`."""

    def __init__(
        self,
        runner: Runs,
        concurrency: int,
        keep: Callable[[Rollout], None],
        share: Share | None = None,
    ) -> None:
        """`keep` is called with each finished rollout, once, in the event loop: a store's `add`.

        With a `share` its slots take the place of `concurrency` of its own.
        """
        self._runner, self._keep = runner, keep
        self._slots = share or FairShare(concurrency).of("all")
        self._failures = 0

    async def run(
        self, plans: Sequence[SessionPlan], done: Callable[[Rollout], None] | None = None
    ) -> list[Rollout]:
        """Run all plans; results in the order of the plans.

        Raises EngineError or HarnessError when sessions fail one after another without an answer.
        A failure or a cancellation ends all that are running.
        """

        async def work(plan: SessionPlan) -> Rollout:
            async with self._slots:
                rollout = await self._run_one(plan)
            self._keep(rollout)
            if done is not None:
                done(rollout)
            return rollout

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(plan)) for plan in plans]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _run_one(self, plan: SessionPlan) -> Rollout:
        rollout = await self._runner.run(plan)
        for _ in range(MAX_ATTEMPTS - 1):
            if rollout.end.scorable and rollout.score is not None:
                break
            self._failures += 1
            if self._failures >= GIVE_UP_AFTER:
                raise self._give_up(rollout)
            rollout = await self._runner.run(plan)
        if rollout.score is not None:
            self._failures = 0
        return rollout

    @staticmethod
    def _give_up(rollout: Rollout) -> Exception:
        text = (
            f"{GIVE_UP_AFTER} sessions in a row failed without a score; the last ended with "
            f"{rollout.end} ({rollout.error or 'no message'}); see `harness-adapters doctor`"
        )
        return EngineError(text) if rollout.end is SessionEnd.API_ERROR else HarnessError(text)
