"""One session: a task, a sandbox, the real agent in it, the verifier after it."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from functools import partial

from harness_adapters.config import BudgetSettings, RewardSettings
from harness_adapters.errors import HarnessAdaptersError, WorkspaceError
from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec, Tape
from harness_adapters.guard.policy.rules import DEFAULT_HIDDEN, TaskRules
from harness_adapters.harness import Harness, Profile
from harness_adapters.records import Conduct, Decision, Phase, Rollout, SessionEnd, ToolCall
from harness_adapters.reward import reward
from harness_adapters.rollout.reconcile import disagreement
from harness_adapters.sandbox import BwrapSandbox, ExecResult, Limits, Verification, verify
from harness_adapters.sandbox.command import HOME
from harness_adapters.tasks import Task

PORT = 8080
RECORD_SECONDS = 20.0
"""To read an agent's own record after its session."""
BASE_URL = f"http://127.0.0.1:{PORT}/v1"


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """What to run, and under which labels to keep it."""

    task: Task
    phase: Phase
    arm: str
    adapter: str
    version: int
    group: str
    attempt: int
    step: int
    temperature: float
    seed: int | None = None


def task_rules(task: Task) -> TaskRules:
    """What a task adds to the guard's policy. Relative paths are below its working directory."""

    def absolute(paths: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(path if path.startswith("/") else f"{task.workdir}/{path}" for path in paths)

    return TaskRules(
        workdir=task.workdir,
        home=HOME,
        hidden=(*DEFAULT_HIDDEN, *absolute(task.guard.hidden_paths)),
        protected=absolute(task.guard.protected_paths),
        hosts=tuple(task.guard.allowed_hosts),
        packages=tuple(task.guard.packages),
    )


@dataclass(frozen=True, slots=True)
class SessionRunner:
    """Runs sessions of one harness through one gateway under one budget."""

    gateway: Gateway
    harness: Harness
    profile: Profile
    budget: BudgetSettings
    reward: RewardSettings
    max_context: int

    async def run(self, plan: SessionPlan, *, session: str | None = None) -> Rollout:
        """Run and score one session. Infrastructure failures give `reward=None`, not an error."""
        session = session or uuid.uuid4().hex[:12]
        tape = self.gateway.open(self._spec(plan, session))
        started = time.time()
        timings: dict[str, float] = {}
        verification: Verification | None = None
        try:
            end, error, verification, disagreed = await self._play(plan.task, tape, timings)
        except HarnessAdaptersError as failure:
            end, error, disagreed = SessionEnd.INIT_FAILURE, str(failure), False
        if not end.scorable:
            verification = None
        calls = [call for turn in tape.turns for call in turn.calls]
        conduct = Conduct.worst(
            [*(call.verdict.conduct for call in calls), *([Conduct.FLAGGED] if disagreed else [])]
        )
        score = verification.score if verification else None
        if score is not None and conduct is Conduct.CHEAT and self.gateway.enforced:
            score = 0.0
        return Rollout(
            id=session,
            phase=plan.phase,
            harness=self.harness.name,
            profile=self.profile,
            arm=plan.arm,
            adapter=plan.adapter,
            version=plan.version,
            task=plan.task.id,
            family=plan.task.family,
            level=plan.task.level,
            group=plan.group,
            attempt=plan.attempt,
            step=plan.step,
            temperature=plan.temperature,
            score=score,
            reward=None if score is None else self._reward(score, calls),
            correct=None if score is None else score >= 1.0 and conduct is not Conduct.CHEAT,
            calls=len(calls),
            end=end,
            error=error,
            turns=list(tape.turns),
            verifier_output=verification.output if verification else "",
            started=started,
            seconds=time.time() - started,
            timings=timings,
            conduct=conduct,
            blocked=sum(call.verdict.decision is Decision.BLOCK for call in calls),
            malformed=sum(call.malformed for call in calls),
        )

    def _spec(self, plan: SessionPlan, session: str) -> SessionSpec:
        return SessionSpec(
            session=session,
            task=plan.task.id,
            harness=self.harness.name,
            workdir=plan.task.workdir,
            adapter=plan.adapter,
            version=plan.version,
            temperature=plan.temperature,
            seed=plan.seed,
            budget=self.budget,
            rules=task_rules(plan.task),
            files=plan.task.files,
        )

    def _reward(self, score: float, calls: list[ToolCall]) -> float:
        faults = sum(c.malformed or c.verdict.decision is Decision.BLOCK for c in calls)
        return reward(
            score,
            len(calls),
            bonus=self.reward.bonus,
            call_budget=self.reward.call_budget,
            faults=faults,
            fault_cost=self.reward.fault_cost,
        )

    async def _play(
        self, task: Task, tape: Tape, timings: dict[str, float]
    ) -> tuple[SessionEnd, str, Verification, bool]:
        """How it ended, a line for people, its score, and whether its records disagree."""
        clock = time.perf_counter()
        logged = self.gateway.audit.size()
        launch = self.harness.launch(
            task.instruction,
            base_url=BASE_URL,
            profile=self.profile,
            max_context=self.max_context,
        )
        sandbox = BwrapSandbox(
            task.lowers,
            task.workdir,
            home_files=launch.home_files,
            binds=launch.binds,
            limits=Limits(memory_mb=task.memory_mb),
        )
        async with sandbox as box:
            timings["setup"] = time.perf_counter() - clock
            result = await box.exec(
                launch.argv,
                env=launch.env,
                timeout=min(self.budget.wall_seconds, task.agent_timeout),
                stdin=launch.stdin,
                serve=partial(self.gateway.serve, tape),
                port=PORT,
            )
            timings["agent"] = result.seconds
            if box.usage.cpu_seconds is not None:
                timings["cpu"] = box.usage.cpu_seconds
            record = await self._record(box, result)
            verification = await self._score(task, box, timings)
        end, error = self._end(tape, result)
        if not end.scorable:
            return end, error, verification, False
        entries = self.gateway.audit.since(logged, tape.spec.session)
        # Of output that was cut the end is missing, of a session that was killed any part.
        whole = not (result.truncated or result.timed_out)
        ran = self.harness.taken_up(record) if whole else None
        differs = disagreement(tape.turns, entries, ran)
        told = "; ".join(filter(None, (error or verification.error, differs)))
        return end, told, verification, bool(differs)

    async def _record(self, box: BwrapSandbox, result: ExecResult) -> bytes:
        """What the agent itself wrote down of the session."""
        command = self.harness.record_command()
        if command is None:
            return result.stdout
        read = await box.exec(command, env={}, timeout=RECORD_SECONDS)
        return read.stdout

    async def _score(
        self, task: Task, box: BwrapSandbox, timings: dict[str, float]
    ) -> Verification:
        """What the agent itself spoiled scores 0: otherwise it could void a failed session."""
        clock = time.perf_counter()
        try:
            frozen = box.freeze()
        except WorkspaceError as error:
            return Verification(0.0, str(error), time.perf_counter() - clock, "")
        timings["freeze"] = time.perf_counter() - clock
        with frozen:
            verification = await verify(
                frozen,
                lowers=task.lowers,
                tests=task.tests,
                workdir=task.workdir,
                timeout=task.verifier_timeout,
                limits=Limits(memory_mb=task.memory_mb),
                confined=task.confined_modules,
            )
        timings["verify"] = verification.seconds
        if verification.timed_out:
            return Verification(
                0.0,
                f"{verification.output}\n{verification.error}".strip(),
                verification.seconds,
                "",
            )
        return verification

    def _end(self, tape: Tape, result: ExecResult) -> tuple[SessionEnd, str]:
        """The gateway knows best why a session ended; then the clock; then the agent's output."""
        if tape.end is not None:
            return tape.end, tape.error
        return self.harness.end(result, model_calls=len(tape.turns))
