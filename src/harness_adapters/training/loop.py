"""The training loop: sample groups in the real agent, update in the learner, publish, validate.

Sampling of step k+1 overlaps the update of step k (one version stale) unless `train.synchronous`.
Every finished rollout is in the store at once and every step's plan before its first session, so
a run continues after a kill at any moment without repeating or losing a session.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.engine import BASE
from harness_adapters.errors import EngineError
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.demonstrations import spread
from harness_adapters.rollout.pool import Pool
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import Stack
from harness_adapters.tasks import Split, Task
from harness_adapters.training.curriculum import Curriculum
from harness_adapters.training.deadline import Deadline
from harness_adapters.training.run import Run
from harness_adapters.training.selection import Validation, choose, doubt
from harness_adapters.training.summary import in_order, summary

VALIDATION_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One published adapter; version 0 is the base without an adapter."""

    name: str
    version: int
    path: Path | None

    @property
    def arm(self) -> str:
        """Label of its rollouts."""
        return "base" if self.version == 0 else self.name.rsplit("-v", 1)[0]


BASE_POLICY = PolicyVersion(BASE, 0, None)


class Trainer:
    """Trains one adapter of one run."""

    def __init__(
        self,
        run: Run,
        stack: Stack,
        learner: LearnerClient,
        reporter: Reporter,
        deadline: Deadline | None = None,
    ) -> None:
        """With a `deadline` it may stop early; the fact `stopped` is then its number of steps."""
        self._run, self._stack, self._learner, self._reporter = run, stack, learner, reporter
        self._settings = run.settings.train
        self._label = stack.harness.name
        self._pool = Pool(stack.runner, run.settings.concurrency, run.store.add, share=stack.share)
        self._tasks = {task.id: task for task in run.dataset.tasks}
        self._curriculum = Curriculum()
        self._mounted: set[str] = set()
        self._deadline = deadline

    async def train(self) -> PolicyVersion:
        """Run the steps that are still to do; the best adapter by validation."""
        store, total = self._run.store, self._settings.steps
        if self._deadline is not None:
            total = min(total, store.fact("stopped", total))
        # The learner may be one step ahead (killed before the loop wrote it down), never behind.
        first = min(int(store.fact("trained_steps", 0)), self._learner.step + 1)
        policy = self._latest()
        sampling: asyncio.Task[list[Rollout]] | None = None
        try:
            await self._validate(BASE_POLICY, 0)
            if first and (self._due(first) or first == total):
                await self._validate(policy, first)
            self._learn_from_the_past(first)
            self._reporter.phase("training", (total - first) * self._sessions_per_step)
            if first < total:
                sampling = self._begin(first, policy)
            began, sessions, step = time.monotonic(), 0, first
            while step < total:
                assert sampling is not None
                rollouts = await sampling
                sampling = None
                self._learn_from(rollouts)
                sessions += len(rollouts)
                if step + 1 < total and self._out_of_time(began, step + 1 - first, sessions):
                    self._reporter.say(
                        f"step {step + 1} of {total} is the last: the time is used up"
                    )
                    total = step + 1
                    store.set_fact("stopped", total)
                if not self._settings.synchronous and step + 1 < total:
                    sampling = self._begin(step + 1, policy)
                policy = await self._update(step, rollouts)
                if sampling is None and step + 1 < total:
                    sampling = self._begin(step + 1, policy)
                if self._due(step + 1) or step + 1 == total:
                    await self._validate(policy, step + 1)
                    self._curriculum.learn(self._validated(step + 1))
                await self._tidy(policy)
                step += 1
        finally:
            if sampling is not None:
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
            await self._unmount(self._mounted)
        if warning := doubt(store.fact("best"), store.fact("validated:0")):
            self._reporter.say(warning)
        return self.best()

    def _out_of_time(self, began: float, steps: int, sessions: int) -> bool:
        return self._deadline is not None and self._deadline.leaves_no_step(began, steps, sessions)

    def _due(self, steps: int) -> bool:
        """Whether the policy after so many steps is validated."""
        return steps % self._settings.validate_every == 0 or steps == self._settings.steps

    def _learn_from_the_past(self, first: int) -> None:
        """Give the curriculum what the steps before `first` gave it while they ran."""
        store = self._run.store
        probed = store.rollouts(phase=Phase.DIFFICULTY, turns=False)
        trained: dict[int, list[Rollout]] = {}
        for rollout in store.rollouts(phase=Phase.TRAIN, turns=False):
            trained.setdefault(rollout.step, []).append(rollout)
        self._curriculum.learn(in_order(probed))
        self._curriculum.learn(self._validated(0))
        for step in range(first):
            self._learn_from(trained.get(step, []))
            self._curriculum.learn(self._validated(step + 1))

    def _learn_from(self, rollouts: list[Rollout]) -> None:
        """Give the curriculum one step's rollouts."""
        self._curriculum.age()
        self._curriculum.learn(in_order(rollouts))

    def _validated(self, step: int) -> list[Rollout]:
        """The validation after so many steps; all kinds are played in it, drawn or not."""
        return in_order(self._run.store.rollouts(phase=Phase.VALIDATION, step=step, turns=False))

    @property
    def _sessions_per_step(self) -> int:
        return self._settings.groups * self._settings.num_generations

    def best(self) -> PolicyVersion:
        """The adapter that validation chose; the base if none was trained."""
        best = self._run.store.fact("best")
        return BASE_POLICY if best is None else self._policy(best["adapter"], best["version"])

    def _policy(self, name: str, version: int) -> PolicyVersion:
        return PolicyVersion(name, version, self._run.root / "adapters" / name)

    def _latest(self) -> PolicyVersion:
        latest = self._run.store.fact("policy", {"version": 0})
        if latest["version"] == 0:
            return BASE_POLICY
        return self._policy(latest["adapter"], latest["version"])

    # Sampling

    def _begin(self, step: int, policy: PolicyVersion) -> asyncio.Task[list[Rollout]]:
        return asyncio.create_task(self._sample(step, policy))

    async def _sample(self, step: int, policy: PolicyVersion) -> list[Rollout]:
        """All rollouts of a step: those in the store, and the missing ones now."""
        store = self._run.store
        plan: dict[str, Any] | None = store.fact(f"step:{step}")
        if plan is None:
            plan = {
                "adapter": policy.name,
                "version": policy.version,
                "tasks": [task.id for task in self._draw(step)],
            }
            store.set_fact(f"step:{step}", plan)
        policy = BASE_POLICY
        if plan["version"] > 0:
            policy = self._policy(plan["adapter"], plan["version"])
        await self._mount(policy)
        have: dict[str, list[Rollout]] = {task: [] for task in plan["tasks"]}
        for rollout in store.rollouts(phase=Phase.TRAIN, step=step):
            have[rollout.task].append(rollout)
        try:
            async with asyncio.TaskGroup() as work:
                groups = [
                    work.create_task(self._sample_group(step, self._tasks[task], policy, done))
                    for task, done in have.items()
                ]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        return [rollout for group in groups for rollout in group.result()]

    async def _sample_group(
        self, step: int, task: Task, policy: PolicyVersion, done: list[Rollout]
    ) -> list[Rollout]:
        """All rollouts of one task, `done` among them; no more where the first ones all agree.

        That choice hangs on outcomes alone. Given its outcome a rollout is drawn as ever, so a
        task's gradient keeps its direction, and only its weight among the tasks changes.
        """
        count = self._settings.num_generations
        first = min(self._settings.probe_generations, count)
        rollouts = await self._sample_attempts(step, task, policy, range(first), done)
        if first < count:
            if len({r.correct for r in rollouts if r.correct is not None}) > 1:
                rest = range(first, count)
                rollouts += await self._sample_attempts(step, task, policy, rest, done)
            else:
                self._reporter.advance(count - first)
        return rollouts

    async def _sample_attempts(
        self, step: int, task: Task, policy: PolicyVersion, attempts: range, done: list[Rollout]
    ) -> list[Rollout]:
        have = {rollout.attempt: rollout for rollout in done}
        plans = [
            SessionPlan(
                task=task,
                phase=Phase.TRAIN,
                arm=self._label,
                adapter=policy.name,
                version=policy.version,
                group=f"{step}/{task.id}",
                attempt=attempt,
                step=step,
                temperature=self._settings.temperature,
            )
            for attempt in attempts
            if attempt not in have
        ]
        kept = [have[attempt] for attempt in attempts if attempt in have]
        return kept + await self._pool.run(plans, self._note)

    def _draw(self, step: int) -> list[Task]:
        used = [
            task
            for earlier in range(step)
            for task in self._run.store.fact(f"step:{earlier}", {"tasks": []})["tasks"]
        ]
        return self._curriculum.draw(
            self._run.tasks(Split.TRAIN),
            self._settings.groups,
            seed=f"{self._settings.seed}/{step}",
            used=used,
        )

    def _note(self, rollout: Rollout) -> None:
        self._reporter.advance(1)

    # Updating

    async def _update(self, step: int, rollouts: list[Rollout]) -> PolicyVersion:
        start = time.monotonic()
        update = await self._learner.update(step, [rollout.id for rollout in rollouts])
        learned = time.monotonic() - start
        policy = self._policy(update.adapter, update.version) if update.version else BASE_POLICY
        await self._mount(policy)
        mounted = time.monotonic() - start - learned
        store = self._run.store
        record = {
            "step": step,
            "time": time.time(),
            **update.metrics,
            **summary(rollouts, self._settings.probe_generations),
        }
        record["learn_seconds"] = learned
        record["mount_seconds"] = mounted
        store.append_metrics(record)
        store.set_fact("policy", {"adapter": policy.name, "version": policy.version})
        store.set_fact("trained_steps", step + 1)
        self._reporter.say(
            f"step {step + 1}/{self._settings.steps}: {record['pass_rate']:.0%} solved, "
            f"{record['calls']:.2f} calls, {record['groups/mixed']} of {record['groups']} groups "
            f"mixed, ratio {record.get('sampling/importance_sampling_ratio/mean', 1.0):.3f}, "
            f"update {learned:.0f} s"
        )
        return policy

    # Validating

    async def _validate(self, policy: PolicyVersion, step: int) -> None:
        store = self._run.store
        if store.fact(f"validated:{step}") is not None:
            return
        await self._mount(policy)
        tasks = spread(self._run.tasks(Split.VALIDATION), self._settings.validation_tasks)
        if not tasks:
            return
        done = store.rollouts(phase=Phase.VALIDATION, step=step, turns=False)
        have = {rollout.task for rollout in done}
        plans = [
            SessionPlan(
                task=task,
                phase=Phase.VALIDATION,
                arm=policy.arm,
                adapter=policy.name,
                version=policy.version,
                group=f"validation/{step}/{task.id}",
                attempt=0,
                step=step,
                temperature=VALIDATION_TEMPERATURE,
            )
            for task in tasks
            if task.id not in have
        ]
        if step == 0:
            self._reporter.phase("measuring the base on the validation tasks", len(plans))
        note = self._note if step == 0 else None
        scored = [r for r in done + await self._pool.run(plans, note) if r.reward is not None]
        result = Validation.of(
            [r.reward or 0.0 for r in scored],
            [bool(r.correct) for r in scored],
            step=step,
            adapter=policy.name,
            version=policy.version,
        )
        store.append_metrics(
            {
                "step": step,
                "time": time.time(),
                "validation/reward": result.reward,
                "validation/pass_rate": result.pass_rate,
                "validation/sessions": len(scored),
            }
        )
        if policy.version and scored:
            store.set_fact("best", choose(store.fact("best"), result))
        store.set_fact(f"validated:{step}", result.reward)
        rate = result.pass_rate
        self._reporter.say(f"validation after step {step}: {rate:.0%} of {len(scored)} solved")

    # Adapters in the engine

    async def _mount(self, policy: PolicyVersion) -> None:
        if policy.path is not None and policy.name not in self._mounted:
            await self._stack.engine.load_adapter(policy.name, policy.path)
            self._mounted.add(policy.name)

    async def _unmount(self, names: Iterable[str]) -> None:
        for name in sorted(names):
            self._mounted.discard(name)
            with contextlib.suppress(EngineError):  # a dead engine holds nothing
                await self._stack.engine.unload_adapter(name)

    async def _tidy(self, policy: PolicyVersion) -> None:
        """Unmount and delete versions that no session can reach any more."""
        oldest = policy.version - 1
        best = self.best()
        await self._unmount([name for name in self._mounted if _version(name) < oldest])
        for directory in (self._run.root / "adapters").glob(f"{self._label}-v*"):
            if _version(directory.name) < oldest - 1 and directory.name != best.name:
                await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)


def _version(name: str) -> int:
    return int(name.rsplit("-v", 1)[1])
