"""`harness-adapters rollout`: one real session on one task."""

from __future__ import annotations

import tempfile
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


def rollout(
    task: Annotated[Path, typer.Option("--task", help="A task directory in Harbor format.")],
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
    engine: EngineUrl = None,
    adapter: Annotated[
        Path | None, typer.Option("--adapter", help="A PEFT adapter directory to play with.")
    ] = None,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Let the task's scripted solution play the model.")
    ] = False,
    run_dir: Annotated[
        Path | None, typer.Option("--run", help="Keep the session in this run directory.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Print the session turn by turn.")] = False,
) -> None:
    """Run one session of the real agent on a task and score it."""
    from harness_adapters import config as settings_file
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.terminal import show_session
    from harness_adapters.rollout.single import run_single
    from harness_adapters.tasks import load_task

    settings = settings_file.load(
        config, overrides(set_, model=model, harness=harness, engine=engine)
    )
    loaded = load_task(task)
    with (
        ConsoleReporter(Console(stderr=True)) as reporter,
        tempfile.TemporaryDirectory(prefix="harness-adapters-") as scratch,
    ):
        result = run_work(
            run_single(
                loaded,
                settings,
                run_dir=run_dir or Path(scratch),
                adapter=adapter,
                oracle=oracle,
                reporter=reporter,
            )
        )
    if show:
        show_session(result, Console())
    else:
        typer.echo(
            f"{result.task}: score {result.score}, reward {result.reward}, "
            f"{result.calls} tool calls, ended {result.end}"
        )
    if result.score is None:
        raise typer.Exit(1)
