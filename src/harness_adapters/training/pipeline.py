"""The whole way of one run: base, raw model's figure, training, evaluation, report.

Each part is skipped where the run directory already holds its result, so the same call continues
an interrupted run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from harness_adapters.config import Settings
from harness_adapters.engine.canary import Pair, canary
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.evaluation.compare import Comparison, compare
from harness_adapters.evaluation.execute import Arm, execute
from harness_adapters.evaluation.plan import PairedPlan, check_held_out
from harness_adapters.learner.client import LearnerClient
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase
from harness_adapters.rollout.demonstrations import spread
from harness_adapters.rollout.stack import Stack, open_stack
from harness_adapters.tasks import Split, Task
from harness_adapters.training.loop import PolicyVersion, Trainer
from harness_adapters.training.run import Run
from harness_adapters.training.warm_base import warm_base


async def prepare_base(run: Run, reporter: Reporter) -> Path:
    """Model directory that the adapter is trained on: warm-started, or the raw model itself."""
    raw = resolve_model(run.settings.model.path, progress=reporter.say)
    base = raw
    if run.settings.warm_start.steps:
        with run.timed("warm start"):
            base = (await warm_base(run.settings, raw, run.dataset, reporter)).model_dir
    run.store.set_fact("raw_model_dir", str(raw))
    run.store.set_fact("model_dir", str(base))
    return base


async def train_run(run: Run, reporter: Reporter) -> PolicyVersion:
    """Train the run's adapter to its last step; the best one by validation."""
    check_held_out(*(run.dataset.split(split) for split in Split))
    base = await prepare_base(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        return await _train(run, stack, base, reporter)


async def train_and_evaluate(run: Run, reporter: Reporter) -> Comparison:
    """Training and paired evaluation on one engine, the raw model's figure first."""
    check_held_out(*(run.dataset.split(split) for split in Split))
    base = await prepare_base(run, reporter)
    await evaluate_raw(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        best = await _train(run, stack, base, reporter)
        return await _evaluate(run, stack, [_arm(best)], reporter)


async def evaluate_run(run: Run, adapters: Sequence[Path | None], reporter: Reporter) -> Comparison:
    """Paired evaluation of a trained run: the base against its best adapter, or against others."""
    check_held_out(*(run.dataset.split(split) for split in Split))
    base = await prepare_base(run, reporter)
    arms = [_arm_of_path(path) for path in adapters if path is not None]
    best = run.store.fact("best")
    if not arms and best is not None:
        path = run.root / "adapters" / best["adapter"]
        arms = [_arm(PolicyVersion(best["adapter"], best["version"], path))]
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        return await _evaluate(run, stack, arms, reporter)


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
    """Show what the model does before any warm start, on a few of the test tasks."""
    raw, base = run.store.fact("raw_model_dir"), run.store.fact("model_dir")
    if raw == base or not run.settings.eval.raw_tasks:
        return
    tasks = test_tasks(run)[: run.settings.eval.raw_tasks]
    done = run.store.rollouts(phase=Phase.TEST, arm="raw", turns=False)
    plan = PairedPlan(tasks=[task.id for task in tasks], arms=["raw"], attempts=1)
    todo = plan.missing(done)
    if not todo:
        return
    settings: Settings = run.settings
    with run.timed("raw model"):
        async with open_stack(settings, Path(raw), run_dir=run.root, reporter=reporter) as stack:
            reporter.phase("the raw model on held-out tasks", len(todo))
            await execute(
                todo,
                arms=[Arm("raw")],
                tasks=tasks,
                phase=Phase.TEST,
                temperature=settings.eval.temperature,
                stack=stack,
                store=run.store,
                concurrency=settings.concurrency,
                reporter=reporter,
            )


async def _train(run: Run, stack: Stack, base: Path, reporter: Reporter) -> PolicyVersion:
    if run.store.fact("trained_steps", 0) >= run.settings.train.steps:
        best = run.store.fact("best")
        if best is not None:
            path = run.root / "adapters" / best["adapter"]
            return PolicyVersion(best["adapter"], best["version"], path)
    learner = await LearnerClient.start(run.root, run.settings.harness.name, base)
    try:
        await _check_agreement(run, stack, learner, reporter)
        with run.timed("training"):
            return await Trainer(run, stack, learner, reporter).train()
    finally:
        await learner.close()


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

    report = await canary(
        stack.engine,
        stack.chat,
        logprobs,
        {adapter.name: adapter.path},
        dtype=run.settings.model.dtype,
    )
    reporter.say(report.line())
    run.store.set_fact("canary", asdict(report))


async def _evaluate(run: Run, stack: Stack, arms: Sequence[Arm], reporter: Reporter) -> Comparison:
    settings = run.settings
    tasks = test_tasks(run)
    everyone = [Arm("base"), *arms]
    plan = PairedPlan(
        tasks=[task.id for task in tasks],
        arms=[arm.label for arm in everyone],
        attempts=settings.eval.attempts,
        seed=settings.tasks.seed,
    )
    done = run.store.rollouts(phase=Phase.TEST, turns=False)
    todo = plan.missing(done)
    reporter.phase("evaluation on held-out tasks", len(todo))
    with run.timed("evaluation"):
        await execute(
            todo,
            arms=everyone,
            tasks=tasks,
            phase=Phase.TEST,
            temperature=settings.eval.temperature,
            stack=stack,
            store=run.store,
            concurrency=settings.concurrency,
            reporter=reporter,
        )
    return comparison(run, treatment=everyone[-1].label)


def comparison(run: Run, treatment: str | None = None) -> Comparison:
    """The paired comparison that the run's store holds."""
    wanted = {task.id for task in test_tasks(run)}
    rollouts = [
        rollout
        for rollout in run.store.rollouts(phase=Phase.TEST, turns=False)
        if rollout.task in wanted
    ]
    return compare(
        rollouts,
        base="base",
        treatment=treatment or run.settings.harness.name,
        unseen_families=set(run.store.fact("dataset", {}).get("unseen_families", [])),
    )


def _arm(policy: PolicyVersion) -> Arm:
    return Arm(policy.arm, policy.name, policy.version, policy.path)


def _arm_of_path(path: Path) -> Arm:
    name = path.resolve().name
    return Arm(name, name, 1, path.resolve())
