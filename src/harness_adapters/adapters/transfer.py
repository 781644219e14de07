"""Playing a matrix of adapters and harnesses: one engine, all adapters mounted, any kill survived.

The evaluation's directory is a run directory like any other, so that the report, the cost ledger
and `eval DIR` (to go on) work on it. Its settings begin with those that the first adapter was
trained under; budgets that differ from an adapter's training are refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness_adapters import config
from harness_adapters.adapters.source import Adapter, find_adapter
from harness_adapters.config import Settings
from harness_adapters.engine import BASE, Engine
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.errors import ConfigError, ModelError, StoreError, TaskError
from harness_adapters.evaluation.execute import Arm, execute, mounted
from harness_adapters.evaluation.held_out import check_unseen, unseen_families
from harness_adapters.evaluation.matrix import Matrix, MatrixArm, MatrixPlan, matrix_of
from harness_adapters.evaluation.pairs import matching
from harness_adapters.evaluation.plan import PairedPlan, PlannedSession
from harness_adapters.evaluation.tally import Tally
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.demonstrations import spread
from harness_adapters.rollout.share import FairShare
from harness_adapters.rollout.stack import make_stack, open_engine
from harness_adapters.tasks import Split, Task
from harness_adapters.training.run import Run, open_run, write_whole

REQUEST = "evaluation.json"
"""In the directory of an evaluation: what it was asked for."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a user asks for."""

    adapters: Sequence[str]
    """`base`, adapter directories, runs; the first is what the others are compared with."""
    harnesses: Sequence[str] = ()
    """Names or harness files; empty: the harness of the first adapter's training."""
    dataset: Path | None = None
    """None: the tasks of the first adapter's run."""
    tasks: int | None = None
    """How many; None: all of a given dataset's test split, else `eval.tasks`."""
    model: str | None = None
    config: Path | None = None
    changes: Sequence[str] = ()
    """`section.key=value`."""

    def plain(self) -> dict[str, Any]:
        """What `eval DIR` needs to go on; settings stand in `config.toml`."""
        paths = [one if one == BASE else _whole(Path(one)) for one in self.adapters]
        return {
            "adapters": paths,
            "harnesses": list(self.harnesses),
            "dataset": None if self.dataset is None else _whole(self.dataset),
            "tasks": self.tasks,
            "model": self.model,
        }

    @classmethod
    def of(cls, root: Path, changes: Sequence[str] = ()) -> Request:
        """The request that an evaluation's directory was made for. Raises StoreError."""
        try:
            v = json.loads((root / REQUEST).read_text(encoding="utf-8"))
            dataset = None if v["dataset"] is None else Path(v["dataset"])
            return cls(
                adapters=v["adapters"],
                harnesses=v["harnesses"],
                dataset=dataset,
                tasks=v["tasks"],
                model=v["model"],
                changes=changes,
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{root / REQUEST}: can't be read ({error}); give --adapters"
            ) from None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A matrix that is ready to be played."""

    run: Run
    plan: MatrixPlan
    adapters: dict[str, Adapter]
    """By label."""
    harnesses: dict[str, str]
    """Label -> name or file."""
    base: Path
    tasks: list[Task]


def default_root(request: Request) -> Path:
    """A directory that the same request gives again: how an interrupted evaluation goes on."""
    plain = {k: v for k, v in request.plain().items() if k != "tasks"}  # more may be asked later
    key = json.dumps(plain, sort_keys=True)
    return Path("runs") / f"eval-{hashlib.sha256(key.encode()).hexdigest()[:8]}"


def open_evaluation(root: Path, request: Request, reporter: Reporter) -> Evaluation:
    """Check everything that can be checked before anything runs.

    Raises ConfigError (budgets), ModelError (adapters, their base), TaskError (not held out),
    StoreError (the directory holds something else), HarnessError.
    """
    again = (root / REQUEST).is_file()
    if (root / "config.toml").exists() and not again:
        raise StoreError(f"{root} holds a training run: name another directory for the evaluation")
    adapters = _adapters(request.adapters)
    if not adapters:
        raise ConfigError("--adapters: name an adapter beside base, such as base,runs/mine")
    kept = root / "config.toml"
    begin = config.load(kept) if again and kept.exists() else None
    settings, harnesses = _settings(request, list(adapters.values()), begin)
    for adapter in adapters.values():
        _check_budget(adapter, settings)
    base = _base(request, adapters, settings, reporter)
    root.mkdir(parents=True, exist_ok=True)
    write_whole(root / REQUEST, json.dumps(request.plain(), indent=1) + "\n")
    run = open_run(root, settings, resume=True)
    try:
        return _planned(run, request, adapters, harnesses, base, reporter)
    except BaseException:
        run.close()
        raise


async def play(evaluation: Evaluation, reporter: Reporter) -> Matrix:
    """Play what is missing, all harnesses at once on one engine; the matrix."""
    run, plan = evaluation.run, evaluation.plan
    arms = [
        Arm(arm.label, arm.adapter, int(arm.path is not None), Path(arm.path) if arm.path else None)
        for arm in plan.arms
    ]
    missing = {label: _missing(run, plan, label) for label in evaluation.harnesses}
    total = sum(len(todo) for _, todo in missing.values())
    if total:
        async with open_engine(
            run.settings, evaluation.base, log_dir=run.root, reporter=reporter
        ) as engine:
            reporter.phase(
                f"{plan.sessions} sessions, {plan.sessions - total} of them played before", total
            )
            with run.timed("evaluation"):
                async with mounted(engine, arms):
                    await _play_all(evaluation, engine, arms, missing, reporter)
    return matrix_of(plan, run.store.rollouts(phase=Phase.TEST, turns=False))


async def _play_all(
    evaluation: Evaluation,
    engine: Engine,
    arms: list[Arm],
    missing: dict[str, tuple[list[Rollout], list[PlannedSession]]],
    reporter: Reporter,
) -> None:
    run, plan = evaluation.run, evaluation.plan
    share = FairShare(run.settings.concurrency)
    tally = Tally([arm.label for arm in arms])

    async def one(label: str, spec: str) -> None:
        done, todo = missing[label]
        tally.add(done)
        own = run.settings.harness.model_copy(update={"name": spec})
        stack = make_stack(
            engine,
            run.settings.model_copy(update={"harness": own}),
            evaluation.base,
            run_dir=run.root,
            audit=f"audit-{label}.jsonl",
            share=share.of(label),
        )
        await execute(
            todo,
            arms=arms,
            tasks=evaluation.tasks,
            phase=Phase.TEST,
            temperature=plan.temperature,
            stack=stack,
            store=run.store,
            concurrency=run.settings.concurrency,
            reporter=reporter,
            tally=tally,
        )

    try:
        async with asyncio.TaskGroup() as group:
            for label, spec in evaluation.harnesses.items():
                group.create_task(one(label, spec))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _whole(path: Path) -> str:
    return str(path.expanduser().absolute())


def _adapters(given: Sequence[str]) -> dict[str, Adapter]:
    """By label, in order. Raises ConfigError where two are the same."""
    found = [find_adapter(Path(one)) for one in given if one != BASE]
    labels = [adapter.label for adapter in found]
    adapters: dict[str, Adapter] = {}
    for adapter in found:
        label = adapter.label if labels.count(adapter.label) == 1 else adapter.name
        if label in adapters:
            raise ConfigError(f"--adapters: {adapter.path} is named twice")
        adapters[label] = adapter
    return adapters


def _settings(
    request: Request, adapters: list[Adapter], begin: Settings | None
) -> tuple[Settings, dict[str, str]]:
    """`begin` or the first adapter's training, overlaid by what is asked; harnesses by label."""
    origin = next((a.origin for a in adapters if a.origin is not None), None)
    if begin is None and origin is not None:
        begin = origin.settings
    settings = config.load(request.config, list(request.changes), begin=begin)
    names = list(request.harnesses) or [settings.harness.name]
    harnesses = {get_harness(name).name: name for name in names}
    if len(harnesses) != len(names):
        raise ConfigError(f"--harness {', '.join(names)}: name each harness once")
    for name in names:
        get_harness(name).installed()
    dataset = request.dataset or (origin.tasks if origin is not None else None)
    engine = settings.engine
    tasks = settings.tasks
    if request.dataset is not None:
        tasks = tasks.model_copy(update={"kinds": []})
    if dataset is not None:
        tasks = tasks.model_copy(update={"dataset": _whole(dataset)})
    return settings.model_copy(
        update={
            "harness": settings.harness.model_copy(update={"name": names[0]}),
            "tasks": tasks,
            "engine": engine.model_copy(
                update={
                    "max_loras": max(engine.max_loras, len(adapters)),
                    "max_lora_rank": max(engine.max_lora_rank, *(a.rank for a in adapters)),
                }
            ),
        }
    ), harnesses


def _check_budget(adapter: Adapter, settings: Settings) -> None:
    if adapter.origin is None:
        return
    trained = adapter.origin.settings.budget.model_dump()
    for key, value in settings.budget.model_dump().items():
        if trained[key] != value:
            raise ConfigError(
                f"budget.{key} is {value}, but {adapter.label} was trained with {trained[key]}: "
                "adapters are evaluated under the budgets of their training; leave it as it was, "
                "or evaluate them one by one"
            )


def _base(
    request: Request, adapters: dict[str, Adapter], settings: Settings, reporter: Reporter
) -> Path:
    """The one directory of weights that all adapters fit."""
    if request.model is not None:
        trusted = settings.model.trust_remote_code
        return resolve_model(request.model, progress=reporter.say, trust_remote_code=trusted)
    bases = {label: adapter.base(reporter.say).resolve() for label, adapter in adapters.items()}
    first = next(iter(bases))
    for label, base in bases.items():
        if base != bases[first]:
            raise ModelError(
                f"{label} fits {base}, {first} fits {bases[first]}: one evaluation has one base; "
                "evaluate them apart, or give the one they share with --model"
            )
    return bases[first]


def _planned(
    run: Run,
    request: Request,
    adapters: dict[str, Adapter],
    harnesses: dict[str, str],
    base: Path,
    reporter: Reporter,
) -> Evaluation:
    test = run.tasks(Split.TEST)
    arms = [_arm(label, adapter, test) for label, adapter in adapters.items()]
    order = {str(one): i for i, one in enumerate(request.adapters)}
    if BASE in order:
        arms.insert(order[BASE], MatrixArm(BASE, BASE, None))
    if len(arms) < 2:
        raise ConfigError("--adapters: a comparison needs two, such as base,runs/mine")
    tasks = _tasks(run, request, arms, test)
    for label, adapter in adapters.items():
        if adapter.origin is None:
            reporter.say(
                f"{label} has no card and lies in no run: whether these tasks are held out from "
                "its training is not checked"
            )
        else:
            check_unseen(adapter.origin.trained_on, tasks, label)
    plan = MatrixPlan(
        arms=arms,
        harnesses=list(harnesses),
        tasks=[task.id for task in tasks],
        attempts=run.settings.eval.attempts,
        temperature=run.settings.eval.temperature,
    )
    _remember(run, plan, base)
    return Evaluation(run, plan, adapters, harnesses, base, tasks)


def _arm(label: str, adapter: Adapter, test: Sequence[Task]) -> MatrixArm:
    origin = adapter.origin
    trained_on = origin.trained_on if origin is not None else []
    return MatrixArm(
        label=label,
        adapter=adapter.name,
        path=str(adapter.path),
        trained_in=origin.harness if origin is not None else None,
        unseen=sorted(unseen_families(trained_on, test)),
        checked=origin is not None,
    )


def _tasks(
    run: Run, request: Request, arms: Sequence[MatrixArm], test: Sequence[Task]
) -> list[Task]:
    """What is played: all of a given dataset, or so many, families as evenly as possible."""
    if not test:
        raise TaskError(
            f"{run.dataset.root}: no task of the test split; set metadata.split in task.toml"
        )
    count = request.tasks
    if count is None:
        if request.dataset is not None:
            return spread(test, len(test))
        count = run.settings.eval.tasks
    trained = [arm for arm in arms if arm.path is not None]
    nowhere = set.intersection(*(set(arm.unseen) for arm in trained))
    seen = [task for task in test if task.family not in nowhere]
    if not seen:
        return spread(test, count)
    rest = [task for task in test if task.family in nowhere]
    return spread(seen, count) + spread(rest, run.settings.eval.unseen_tasks)


def _remember(run: Run, plan: MatrixPlan, base: Path) -> None:
    """What the report reads."""
    store = run.store
    store.set_fact("matrix", asdict(plan))
    first = plan.others[0]
    store.set_fact(
        "evaluation",
        {
            "base": plan.reference.label,
            "treatment": first.label,
            "played": {a.label: a.adapter for a in (plan.reference, first)},
            "temperature": plan.temperature,
            "tasks": plan.tasks,
            "harness": plan.harnesses[0],
            "unseen_families": first.unseen,
        },
    )
    store.set_fact("model_dir", str(base))


def _missing(
    run: Run, plan: MatrixPlan, harness: str
) -> tuple[list[Rollout], list[PlannedSession]]:
    """Of one harness: sessions played, sessions to play."""
    paired = PairedPlan(
        tasks=plan.tasks,
        arms=[arm.label for arm in plan.arms],
        attempts=plan.attempts,
        seed=run.settings.tasks.seed,
    )
    done = matching(
        run.store.rollouts(phase=Phase.TEST, harness=harness, turns=False),
        {arm.label: arm.adapter for arm in plan.arms},
        plan.temperature,
    )
    return done, paired.missing(done)
