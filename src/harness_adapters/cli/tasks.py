"""`harness-adapters tasks`: write the starter suite, check any Harbor dataset."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from harness_adapters.cli.options import (
    ConfigFile,
    EngineUrl,
    HarnessName,
    Model,
    Overrides,
    overrides,
)
from harness_adapters.cli.running import run as run_work

app = typer.Typer(
    help="Write the starter tasks; check a dataset; measure how hard it is.", no_args_is_help=True
)


@app.command()
def starter(
    out: Annotated[Path, typer.Option("--out", help="New or empty directory to write to.")],
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other tasks.")] = 0,
    train: Annotated[int, typer.Option(min=0, help="Training tasks.")] = 600,
    validation: Annotated[int, typer.Option(min=0, help="Validation tasks.")] = 60,
    test: Annotated[int, typer.Option(min=0, help="Held-out tasks.")] = 200,
) -> None:
    """Write the starter suite as Harbor task directories."""
    from harness_adapters.tasks.starter import write
    from harness_adapters.tasks.task import Split

    dataset = write(out, seed=seed, train=train, validation=validation, test=test)
    sizes = ", ".join(f"{len(dataset.split(split))} {split}" for split in Split)
    console = Console()
    console.print(f"{len(dataset.tasks)} tasks in {out}: {sizes}")
    console.print(f"{len(dataset.families())} families, content {dataset.content_hash[:16]}")
    console.print(f"check them with: harness-adapters tasks validate {out}")


@app.command()
def validate(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Harbor tasks, at any depth.")],
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Tasks at the same time.")] = 2,
) -> None:
    """Check that each verifier rewards the oracle and nothing else; exit with 1 when one fails."""
    from harness_adapters.tasks import load_dataset
    from harness_adapters.tasks.validate import validate as validate_dataset

    dataset = load_dataset(directory)
    console = Console()
    bar = Progress(
        TextColumn("checking tasks"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        work = bar.add_task("", total=len(dataset.tasks))
        reports = asyncio.run(
            validate_dataset(dataset, jobs=jobs, progress=lambda _: bar.advance(work))
        )
    failed = [report for report in reports if not report.ok]
    attempts = sum(report.attempts for report in reports)
    if failed:
        table = Table("task", "problem", box=None, pad_edge=False)
        for report in failed:
            for problem in report.problems:
                table.add_row(report.task.id, Text(problem))
        console.print(table)
    console.print(
        f"{len(reports) - len(failed)} of {len(reports)} tasks are sound "
        f"({attempts} attempts scored)"
    )
    if failed:
        raise typer.Exit(1)


@app.command()
def difficulty(
    run_dir: Annotated[
        Path, typer.Argument(metavar="RUN", help="Run directory, new or of an earlier call.")
    ],
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
    engine: EngineUrl = None,
    attempts: Annotated[int, typer.Option(min=1, help="Sessions of each kind.")] = 8,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Of sampling; the training's where not given.")
    ] = None,
    low: Annotated[float, typer.Option(min=0, max=1, help="Lowest rate to train on.")] = 0.2,
    high: Annotated[float, typer.Option(min=0, max=1, help="Highest rate to train on.")] = 0.7,
) -> None:
    """Measure the base's pass rate on each kind of training task, and name those to train on."""
    from harness_adapters import config as settings_file
    from harness_adapters.errors import ConfigError
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.difficulty import measure
    from harness_adapters.training.run import open_run

    if low > high:
        raise ConfigError(f"--low {low} is above --high {high}")
    settings = settings_file.load(
        config, overrides(set_, model=model, harness=harness, engine=engine)
    )
    run = open_run(run_dir, settings, resume=True)
    try:
        with ConsoleReporter(Console(stderr=True)) as reporter:
            found = run_work(measure(run, reporter, attempts=attempts, temperature=temperature))
    finally:
        run.close()
    table = Table("kind", "solved", "rate", "calls", "", box=None, pad_edge=False)
    for one in found:
        inside = "train" if low <= one.pass_rate <= high else ""
        solved = f"{one.solved}/{one.sessions}"
        table.add_row(Text(one.kind), solved, f"{one.pass_rate:.0%}", f"{one.calls:.1f}", inside)
    console = Console()
    console.print(table)
    chosen = sorted(one.kind for one in found if low <= one.pass_rate <= high)
    console.print(f"{len(chosen)} of {len(found)} kinds between {low:.0%} and {high:.0%}:")
    names = ", ".join(f'"{kind}"' for kind in chosen)
    console.print(f"[tasks]\nkinds = [{names}]", markup=False, highlight=False)
