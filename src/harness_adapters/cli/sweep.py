"""`harness-adapters sweep`: ablations, one run for each combination of settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from harness_adapters.sweep.directory import Sweep

Over = Annotated[
    list[str] | None,
    typer.Option("--over", help="A setting and its values: reward.bonus=0,0.1,0.3; repeatable."),
]


def sweep(
    root: Annotated[Path, typer.Argument(metavar="SWEEP", help="The directory to write.")],
    over: Over = None,
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
    engine: EngineUrl = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the cells.")] = False,
) -> None:
    """Train one run for each combination of values, evaluate all on the same held-out tasks.

    The first combination is what the others are compared with. The same command goes on after an
    interruption; without --over the sweep in SWEEP does.
    """
    from harness_adapters import config as settings_file
    from harness_adapters.errors import LearnerError
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.sweep import write_sweep_report
    from harness_adapters.sweep.directory import open_sweep, reopen_sweep
    from harness_adapters.sweep.grid import axis, cells
    from harness_adapters.sweep.play import play_sweep
    from harness_adapters.sweep.table import read_sweep
    from harness_adapters.sweep.text import as_text

    changes = overrides(set_, model=model, harness=harness, engine=engine)
    axes = [axis(one) for one in over or []]
    console = Console()
    if dry_run:
        for cell in cells(axes, settings_file.load(config, changes)):
            typer.echo(cell.name)
        return
    with ConsoleReporter(console) as reporter:
        if axes:
            ready: Sweep = open_sweep(root, axes, settings_file.load(config, changes))
        else:
            ready = reopen_sweep(root, changes)
        run_work(play_sweep(ready, reporter))
        reporter.phase("writing the report")
        page = write_sweep_report(root)
    table = read_sweep(root)
    typer.echo(as_text(table))
    typer.echo(f"report: {page}")
    stopped = [cell for cell in table.cells if cell.stopped]
    if stopped:
        raise LearnerError(
            f"{len(stopped)} of {len(table.cells)} cells stopped, {stopped[0].name} first: "
            f"{stopped[0].stopped} (the same command tries again)"
        )
