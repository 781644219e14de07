"""`harness-adapters train`: train an adapter into a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import (
    ConfigFile,
    EngineUrl,
    HarnessName,
    Model,
    Overrides,
    overrides,
)
from harness_adapters.cli.running import run as run_work


def train(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="The run directory to write.")],
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
    engine: EngineUrl = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the run in RUN.")] = False,
) -> None:
    """Warm-start (where the settings say so) and train one adapter by reinforcement learning."""
    from harness_adapters import config as settings_file
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.pipeline import train_run
    from harness_adapters.training.run import open_run, reopen_run

    changes = overrides(set_, model=model, harness=harness, engine=engine)
    console = Console()
    with ConsoleReporter(console) as reporter:
        if resume and config is None:
            run = reopen_run(run_dir, changes)
        else:
            run = open_run(run_dir, settings_file.load(config, changes), resume=resume)
        best = run_work(train_run(run, reporter))
    run.close()
    console.print(f"best adapter: {best.path}", highlight=False, soft_wrap=True, markup=False)
    console.print(f"next: harness-adapters eval {run_dir}", highlight=False, markup=False)
