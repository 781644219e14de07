"""`harness-adapters train`: train an adapter into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import (
    ConfigFile,
    EngineUrl,
    Model,
    Overrides,
    harness_spec,
    overrides,
)
from harness_adapters.cli.running import run as run_work

Harnesses = Annotated[
    list[str] | None,
    typer.Option(
        "--harness", help="The agent to train in; several times: so many trainers on one engine."
    ),
]


def train(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="The run directory to write.")],
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: Harnesses = None,
    engine: EngineUrl = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in RUN.")] = False,
) -> None:
    """Warm-start (where the settings say so) and train adapters by reinforcement learning."""
    from harness_adapters.training.fleet import fleet_harnesses

    harnesses = [harness_spec(one) for one in harness or []]
    single = harnesses[0] if len(harnesses) == 1 else None
    changes = overrides(set_, model=model, harness=single, engine=engine)
    if len(harnesses) > 1 or fleet_harnesses(run_dir):
        _train_several(run_dir, config, changes, harnesses, resume=resume)
    else:
        _train_one(run_dir, config, changes, resume=resume)


def _train_one(run_dir: Path, config: Path | None, changes: list[str], *, resume: bool) -> None:
    from harness_adapters import config as settings_file
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.pipeline import train_run
    from harness_adapters.training.run import open_run, reopen_run

    console = Console()
    with ConsoleReporter(console) as reporter:
        if resume and config is None:
            run = reopen_run(run_dir, changes)
        else:
            run = open_run(run_dir, settings_file.load(config, changes), resume=resume)
        best = run_work(train_run(run, reporter))
    run.close()
    _say(console, f"best adapter: {best.path}")
    _say(console, f"next: harness-adapters eval {run_dir}")


def _train_several(
    run_dir: Path, config: Path | None, changes: list[str], harnesses: list[str], *, resume: bool
) -> None:
    from harness_adapters import config as settings_file
    from harness_adapters.errors import HarnessAdaptersError, LearnerError
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.fleet import open_fleet, reopen_fleet, train_fleet

    console = Console()
    with ConsoleReporter(console) as reporter:
        if resume and config is None and not harnesses:
            runs = reopen_fleet(run_dir, changes)
        else:
            settings = settings_file.load(config, changes)
            runs = open_fleet(run_dir, settings, harnesses, resume=resume)
        outcomes = run_work(train_fleet(runs, reporter))
    for name, run in runs.items():
        run.close()
        outcome = outcomes[name]
        if not isinstance(outcome, HarnessAdaptersError):
            _say(console, f"{name}: best adapter: {outcome.path}")
            _say(console, f"{name}: next: harness-adapters eval {run.root}")
    failed = {n: o for n, o in outcomes.items() if isinstance(o, HarnessAdaptersError)}
    if failed:
        name, error = next(iter(failed.items()))
        raise LearnerError(
            f"{len(failed)} of {len(runs)} trainers stopped, {name} first: {error} "
            f"(go on with harness-adapters train {run_dir} --resume)"
        )


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True, markup=False)
