"""The whole way of one run: base, training, evaluation, raw model's figure.

Each part is skipped where the run directory already holds its result, so the same call continues
an interrupted run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness_adapters.engine.canary import Pair, canary
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.errors import LearnerError, ModelError, StoreError, TaskError
from harness_adapters.evaluation.compare import Comparison, compare, matching
from harness_adapters.evaluation.execute import Arm, execute, mounted
from harness_adapters.evaluation.held_out import check_held_out
from harness_adapters.evaluation.plan import PairedPlan, PlannedSession
from harness_adapters.evaluation.tally import Tally
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.demonstrations import spread
from harness_adapters.rollout.stack import Stack, open_stack
from harness_adapters.tasks import Split, Task
from harness_adapters.training.deadline import Deadline
from harness_adapters.training.kinds import choose_kinds
from harness_adapters.training.loop import PolicyVersion, Trainer
from harness_adapters.training.run import Run
from harness_adapters.training.warm_base import WarmBase, file_hash, warm_base

BASE_ARM = Arm("base")

RAW_ENGINE_SECONDS = 40
"""What an engine for the raw model takes to start, about, on two cores."""


async def prepare_base(run: Run, reporter: Reporter) -> Path:
    """Model directory that the adapter is trained on: warm-started, or the raw model itself."""
    settings = run.settings
    raw = resolve_model(
        settings.model.path,
        progress=reporter.say,
        trust_remote_code=settings.model.trust_remote_code,
    )
    warm = None
    if settings.warm_start.steps:
        warm = await warm_base(settings, raw, run.dataset, reporter)
    return adopt_base(run, raw, warm)


def adopt_base(run: Run, raw: Path, warm: WarmBase | None) -> Path:
    """Write down what the run is trained on: `warm`, or the raw model. Its directory.

    Raises StoreError when the run was trained on another warm start before.
    """
    store, base = run.store, raw
    if warm is not None:
        before = store.fact("warm_base")
        if before is not None and before["weights"] != warm.facts["weights"]:
            raise StoreError(
                f"{run.root} was trained on another warm start than {warm.model_dir} holds now "
                "(its cache was made again): start a new run"
            )
        store.set_fact("warm_base", warm.facts)
        base = warm.model_dir
    store.set_fact("raw_model_dir", str(raw))
    store.set_fact("model_dir", str(base))
    return base


async def train_run(run: Run, reporter: Reporter) -> PolicyVersion:
    """Train the run's adapter to its last step; the best one by validation."""
    check_tasks(run)
    base = await prepare_base(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        return await train_on(run, stack, base, reporter)


async def train_and_evaluate(
    run: Run, reporter: Reporter, *, minutes: float | None = None
) -> Comparison:
    """Training and paired evaluation on one engine, then the raw model's figure on another.

    With `minutes`, as many of the training's steps as leave time for the evaluation within them;
    what an interrupted run has used of them counts.
    """
    check_tasks(run)
    deadline = None
    if minutes is not None:
        used = sum(run.store.fact("timing", {}).values())
        sizes = run.settings.eval
        sessions = 2 * len(test_tasks(run)) * sizes.attempts + sizes.raw_tasks
        end = time.monotonic() + 60 * minutes - used - RAW_ENGINE_SECONDS
        deadline = Deadline(end, sessions)
    base = await prepare_base(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        best = await train_on(run, stack, base, reporter, deadline)
        result = await _evaluate(run, stack, _arm(best), reporter)
    await evaluate_raw(run, reporter)
    return result


async def evaluate_run(run: Run, adapter: Path | None, reporter: Reporter) -> Comparison:
    """Paired evaluation of the base against the run's best adapter, or against another one."""
    check_held_out(*(run.dataset.split(split) for split in Split))
    arm = _best_arm(run) if adapter is None else _arm_of_path(adapter)
    base = await prepare_base(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        return await _evaluate(run, stack, arm, reporter)


def test_tasks(run: Run) -> list[Task]:
    """The held-out tasks of the evaluation, every family-level as evenly as possible.

    Families that training has tasks of make the quoted figure; the others are reported apart.
    """
    trained = {task.family for task in run.tasks(Split.TRAIN)}
    seen = [task for task in run.tasks(Split.TEST) if task.family in trained]
    unseen = [task for task in run.tasks(Split.TEST) if task.family not in trained]
    sizes = run.settings.eval
    return spread(seen, sizes.tasks) + spread(unseen, sizes.unseen_tasks)


async def evaluate_raw(run: Run, reporter: Reporter) -> None:
    """Show what the model does before any warm start, on a sample of the test tasks."""
    raw, base = run.store.fact("raw_model_dir"), run.store.fact("model_dir")
    if raw == base or run.settings.engine.url is not None:
        return  # a server that is attached to holds one model: the base
    trained = {task.family for task in run.tasks(Split.TRAIN)}
    seen = [task for task in run.tasks(Split.TEST) if task.family in trained]
    tasks = spread(seen, run.settings.eval.raw_tasks)
    arm = Arm("raw")
    if not _missing(run, tasks, [arm], attempts=1)[1]:
        return
    async with open_stack(run.settings, Path(raw), run_dir=run.root, reporter=reporter) as stack:
        await _play(run, stack, tasks, [arm], attempts=1, reporter=reporter)


def check_tasks(run: Run) -> None:
    """Raises TaskError when a split is empty, or a held-out task is not held out."""
    for split in Split:
        if not run.tasks(split):
            raise TaskError(
                f"{run.dataset.root}: no task of the {split} split; set metadata.split in task.toml"
            )
    check_held_out(*(run.dataset.split(split) for split in Split))


async def train_on(
    run: Run,
    stack: Stack,
    base: Path,
    reporter: Reporter,
    deadline: Deadline | None = None,
) -> PolicyVersion:
    """The run's steps that are still to do, on an engine that serves `base`; its best adapter."""
    steps = run.settings.train.steps
    if deadline is not None:
        steps = min(steps, run.store.fact("stopped", steps))
    if not is_trained(run, steps):
        with run.timed("training"):
            await choose_kinds(run, stack, reporter)
        learner = await LearnerClient.start(run.root, stack.harness.name, base)
        try:
            if learner.note:
                reporter.say(learner.note)
            await _check_agreement(run, stack, learner, reporter)
            with run.timed("training"):
                await Trainer(run, stack, learner, reporter, deadline).train()
        finally:
            await learner.close()
    return best_adapter(run)


def is_trained(run: Run, steps: int) -> bool:
    """Whether so many steps are done and what came of the last one is validated."""
    done = run.store.fact("trained_steps", 0) >= steps
    return done and run.store.fact(f"validated:{steps}") is not None


def best_adapter(run: Run) -> PolicyVersion:
    """The best adapter of a run that is trained. Raises LearnerError where it has none."""
    best = run.store.fact("best")
    if best is None:
        raise LearnerError(
            f"no step moved the weights: no group of rollouts disagreed; see {run.root}/"
            "metrics.jsonl, then choose easier tasks or a longer warm start in a new run"
        )
    return PolicyVersion(best["adapter"], best["version"], run.root / "adapters" / best["adapter"])


async def _check_agreement(
    run: Run, stack: Stack, learner: LearnerClient, reporter: Reporter
) -> None:
    """The canary, on the base and on the learner's present adapter."""
    reporter.phase("canary: do trainer and engine agree?")
    adapter = await learner.publish()
    await stack.engine.load_adapter(adapter.name, adapter.path)
    loop = asyncio.get_running_loop()

    def logprobs(pairs: list[Pair], path: str | None) -> list[list[float]]:
        """Called by the canary in a thread; the learner is asked in the event loop."""
        asked = learner.logprobs(pairs, None if path is None else Path(path))
        return asyncio.run_coroutine_threadsafe(asked, loop).result()

    try:
        report = await canary(
            stack.engine,
            stack.chat,
            logprobs,
            {adapter.name: adapter.path},
            dtype=run.settings.model.dtype,
            temperature=run.settings.train.temperature,
        )
    finally:
        await stack.engine.unload_adapter(adapter.name)
    reporter.say(report.line())
    run.store.set_fact("canary", asdict(report))


async def _evaluate(run: Run, stack: Stack, arm: Arm, reporter: Reporter) -> Comparison:
    arms = [BASE_ARM, arm]
    tasks = test_tasks(run)
    run.store.set_fact(
        "evaluation",
        {
            "base": BASE_ARM.label,
            "treatment": arm.label,
            "played": {one.label: one.adapter for one in arms},
            "temperature": run.settings.eval.temperature,
            "tasks": [task.id for task in tasks],
        },
    )
    await _play(run, stack, tasks, arms, attempts=run.settings.eval.attempts, reporter=reporter)
    wanted = {task.id for task in tasks}
    rollouts = [
        rollout
        for rollout in run.store.rollouts(phase=Phase.TEST, turns=False)
        if rollout.task in wanted
    ]
    return compare(
        rollouts,
        base=BASE_ARM.label,
        treatment=arm.label,
        unseen_families=set(run.store.fact("dataset", {}).get("unseen_families", [])),
        played={one.label: one.adapter for one in arms},
        temperature=run.settings.eval.temperature,
    )


def _missing(
    run: Run, tasks: Sequence[Task], arms: Sequence[Arm], *, attempts: int
) -> tuple[list[Rollout], list[PlannedSession]]:
    """Sessions of these arms on these tasks: those played, and those to play in order."""
    plan = PairedPlan(
        tasks=[task.id for task in tasks],
        arms=[arm.label for arm in arms],
        attempts=attempts,
        seed=run.settings.tasks.seed,
    )
    done = matching(
        run.store.rollouts(phase=Phase.TEST, turns=False),
        {arm.label: arm.adapter for arm in arms},
        run.settings.eval.temperature,
    )
    wanted = set(plan.tasks)
    return [r for r in done if r.task in wanted], plan.missing(done)


async def _play(
    run: Run,
    stack: Stack,
    tasks: Sequence[Task],
    arms: Sequence[Arm],
    *,
    attempts: int,
    reporter: Reporter,
) -> None:
    """Play what the store lacks of these arms on these tasks."""
    done, todo = _missing(run, tasks, arms, attempts=attempts)
    names = " and ".join(arm.label for arm in arms)
    reporter.phase(f"held-out tasks, played by {names}", len(todo))
    tally = Tally([arm.label for arm in arms])
    tally.add(done)
    with run.timed("evaluation"):
        async with mounted(stack.engine, arms):
            await execute(
                todo,
                arms=arms,
                tasks=tasks,
                phase=Phase.TEST,
                temperature=run.settings.eval.temperature,
                stack=stack,
                store=run.store,
                concurrency=run.settings.concurrency,
                reporter=reporter,
                tally=tally,
            )


def _best_arm(run: Run) -> Arm:
    best = run.store.fact("best")
    if best is None:
        raise StoreError(
            f"{run.root} holds no trained adapter yet: train it first (harness-adapters train "
            f"{run.root} --resume), or name one with --adapter"
        )
    path = run.root / "adapters" / best["adapter"]
    return _arm(PolicyVersion(best["adapter"], best["version"], path))


def _arm(policy: PolicyVersion) -> Arm:
    return Arm(policy.arm, policy.name, policy.version, policy.path)


def _arm_of_path(path: Path) -> Arm:
    """An adapter from elsewhere: named by its directory and its weights' hash."""
    weights = path / "adapter_model.safetensors"
    if not weights.is_file() or not (path / "adapter_config.json").is_file():
        raise ModelError(f"{path}: not a PEFT adapter directory (adapter_config.json and weights)")
    name = f"{path.resolve().name}-{file_hash(weights)[:8]}"
    return Arm(name, name, 1, path.resolve())
