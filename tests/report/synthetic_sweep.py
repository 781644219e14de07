"""The directory of a sweep made of invented sessions whose outcomes are known exactly."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from harness_adapters.config import Settings
from harness_adapters.evaluation.matrix import MatrixArm, MatrixPlan
from harness_adapters.records import Phase
from harness_adapters.store import Store
from harness_adapters.sweep.directory import Kept, cell_directory
from harness_adapters.sweep.grid import Axis
from harness_adapters.sweep.play import ARMS

from .synthetic import make_rollout

TASKS = 20


def make_sweep(
    root: Path,
    axis: Axis,
    evaluations: Mapping[str, Mapping[str, int]],
    *,
    base: int = 10,
    stopped: Mapping[str, str] | None = None,
) -> Path:
    """`evaluations`: key -> cell -> how many of the 20 tasks its adapter solves, the first ones.

    The base solves the first `base` of them. Cells of no evaluation are in training.
    """
    values = [{axis.key: value} for value in axis.values]
    names = [f"{axis.key.rpartition('.')[2]}-{value}" for value in axis.values]
    root.mkdir()
    Kept([axis], dict(zip(names, values, strict=True)), dict(stopped or {})).write(root)
    done = {name for own in evaluations.values() for name in own}
    for name in names:
        store = Store(cell_directory(root, name))
        store.set_fact("settings", Settings().model_dump())
        store.set_fact("trained_steps", Settings().train.steps if name in done else 3)
        if name in done:
            store.set_fact("best", {"step": 10, "adapter": "pi-v10", "version": 10})
        for step in range(2):
            store.add(
                make_rollout(random.Random(step), phase=Phase.TRAIN, arm="pi", family="csv",
                             level=1, instance=step, step=step, chance=0.5, started=step)
            )  # fmt: skip
        store.close()
    for key, own in evaluations.items():
        _evaluation(root / "evaluations" / key, own, base)
    return root


def _evaluation(place: Path, own: Mapping[str, int], base: int) -> None:
    """All adapters have the same label in their runs, as real ones do."""
    arms = [MatrixArm("base", "base", None)]
    arms += [MatrixArm(f"pi-v10-{i}", f"pi-v10-{i}", f"/{n}", "pi") for i, n in enumerate(own)]
    store = Store(place)
    tasks: set[str] = set()
    for arm, solved in zip(arms, [base, *own.values()], strict=True):
        for instance in range(TASKS):
            rollout = make_rollout(
                random.Random(instance), phase=Phase.TEST, arm=arm.label, level=1,
                family="csv" if instance % 2 else "logs", instance=instance,
                chance=float(instance < solved), started=1000.0 + instance,
            )  # fmt: skip
            store.add(replace(rollout, adapter=arm.adapter))
            tasks.add(rollout.task)
    plan = MatrixPlan(arms, ["pi"], sorted(tasks), 1, 0.8)
    store.set_fact("matrix", asdict(plan))
    store.set_fact(ARMS, {name: f"pi-v10-{i}" for i, name in enumerate(own)})
    first = arms[1].label
    store.set_fact(
        "evaluation",
        {"base": "base", "treatment": first, "played": {"base": "base", first: arms[1].adapter},
         "temperature": 0.8, "tasks": plan.tasks, "harness": "pi", "unseen_families": []},
    )  # fmt: skip
    store.close()
