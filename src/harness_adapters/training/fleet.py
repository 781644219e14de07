"""Several trainers on one engine: one run directory for each harness, side by side.

`ROOT/pi`, `ROOT/opencode`, … are ordinary runs, each with its own settings, sessions, metrics,
checkpoints and best adapter; `eval` and `report` take them one by one. What they share is the
engine with one set of weights, the warm-started base, and the slots for sessions, fairly.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.errors import HarnessAdaptersError, StoreError
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Labelled, Reporter
from harness_adapters.rollout.share import FairShare
from harness_adapters.rollout.stack import make_stack, open_engine
from harness_adapters.training.loop import PolicyVersion
from harness_adapters.training.pipeline import adopt_base, check_tasks, train_on
from harness_adapters.training.run import Run, open_run, write_whole
from harness_adapters.training.warm_base import WarmBase, warm_base

LIVE_VERSIONS = 3
"""Adapters of one trainer that may be in use at once: sampled, being validated, just published."""

Outcome = PolicyVersion | HarnessAdaptersError
"""A trainer's best adapter, or what ended it."""


def open_fleet(
    root: Path, settings: Settings, harnesses: Sequence[str], *, resume: bool
) -> dict[str, Run]:
    """Open one run for each harness below `root`.

    Raises StoreError when `root` holds something else, HarnessError for what is not installed.
    """
    names = sorted(harnesses)
    if len(set(names)) != len(names):
        raise StoreError(f"--harness {', '.join(names)}: name each harness once")
    labels = {name: get_harness(name).name for name in names}
    for name in names:
        get_harness(name).installed()
    if (root / "config.toml").exists():
        raise StoreError(f"{root} holds the run of one harness: name another directory")
    before = fleet_harnesses(root)
    if before and before != names:
        raise StoreError(
            f"{root} was started with {', '.join(before)}: name the same, or another directory"
        )
    runs: dict[str, Run] = {}
    try:
        for name, label in labels.items():
            own = _settings_of(settings, names, name)
            alone = len(names) == 1
            runs[label] = open_run(root / label, own, resume=resume, known=alone)
    except BaseException:
        for run in runs.values():
            run.close()
        raise
    write_whole(root / "fleet.json", json.dumps({"harnesses": names}) + "\n")
    return runs


def reopen_fleet(root: Path, changes: Sequence[str] = ()) -> dict[str, Run]:
    """Open a fleet again with its own settings, overlaid by `changes`."""
    names = fleet_harnesses(root)
    first = get_harness(names[0]).name
    settings = config.load(root / first / "config.toml", list(changes))
    return open_fleet(root, settings, names, resume=True)


def fleet_harnesses(root: Path) -> list[str]:
    """Which harnesses a fleet in `root` trains; empty where there is none."""
    try:
        return sorted(json.loads((root / "fleet.json").read_text())["harnesses"])
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        raise StoreError(f"{root}/fleet.json can't be read: start a new run") from None


def _settings_of(settings: Settings, names: Sequence[str], name: str) -> Settings:
    harness = settings.harness.model_copy(update={"name": name})
    loras = max(settings.engine.max_loras, LIVE_VERSIONS * len(names))
    engine = settings.engine.model_copy(update={"max_loras": loras})
    return settings.model_copy(update={"harness": harness, "engine": engine})


async def train_fleet(runs: dict[str, Run], reporter: Reporter) -> dict[str, Outcome]:
    """Train all runs at once; each one's best adapter, or the error that ended it.

    A trainer that fails leaves the others at work. Raises what concerns all: no engine, no base.
    """
    for run in runs.values():
        check_tasks(run)
    first = next(iter(runs.values()))
    settings = first.settings
    raw = resolve_model(
        settings.model.path,
        progress=reporter.say,
        trust_remote_code=settings.model.trust_remote_code,
    )
    warm: WarmBase | None = None
    if settings.warm_start.steps:
        specs = [run.settings.harness.name for run in runs.values()]
        warm = await warm_base(settings, raw, first.dataset, reporter, harnesses=specs)
    bases = [adopt_base(run, raw, warm) for run in runs.values()]
    share = FairShare(settings.concurrency)
    root = first.root.parent
    async with open_engine(settings, bases[0], log_dir=root, reporter=reporter) as engine:
        reporter.phase(f"training {', '.join(runs)}", _sessions(runs))

        async def train(name: str, run: Run) -> Outcome:
            stack = make_stack(
                engine, run.settings, bases[0], run_dir=run.root, share=share.of(name)
            )
            try:
                return await train_on(run, stack, bases[0], Labelled(reporter, name))
            except HarnessAdaptersError as error:
                reporter.say(f"{name}: stopped: {error}")
                return error

        try:
            async with asyncio.TaskGroup() as group:
                trainers = {name: group.create_task(train(name, run)) for name, run in runs.items()}
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
    return {name: trainer.result() for name, trainer in trainers.items()}


def _sessions(runs: dict[str, Run]) -> int:
    """Training sessions that are still to be played, at most."""
    total = 0
    for run in runs.values():
        train = run.settings.train
        left = max(0, train.steps - run.store.fact("trained_steps", 0))
        total += left * train.groups * train.num_generations
    return total
