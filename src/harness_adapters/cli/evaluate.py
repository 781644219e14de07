"""`harness-adapters eval`: base against adapter on held-out tasks, paired."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import EngineUrl, Overrides, overrides
from harness_adapters.cli.running import run as run_work


def evaluate(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A trained run directory.")],
    adapter: Annotated[
        Path | None,
        typer.Option("--adapter", help="Another PEFT adapter than the run's best."),
    ] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", help="Held-out tasks to run.")] = None,
    attempts: Annotated[int | None, typer.Option("--attempts", help="Sessions per task.")] = None,
    engine: EngineUrl = None,
    set_: Overrides = None,
) -> None:
    """Run base and adapter on the same held-out tasks; print the headline; write the report.

    Sessions that the run already holds are not repeated, so an interrupted evaluation continues.
    """
    from harness_adapters.evaluation.headline import apart
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.data import read_run
    from harness_adapters.report.page import write_report
    from harness_adapters.training.pipeline import evaluate_run
    from harness_adapters.training.run import reopen_run

    console = Console()
    changes = overrides(set_, engine=engine)
    if tasks is not None:
        changes.append(f"eval.tasks={tasks}")
    if attempts is not None:
        changes.append(f"eval.attempts={attempts}")
    with ConsoleReporter(console) as reporter:
        run = reopen_run(run_dir, changes)
        result = run_work(evaluate_run(run, adapter, reporter))
        reporter.phase("writing the report")
        page = write_report(run_dir)
    run.close()
    console.print(read_run(run_dir).headline(), style="bold", highlight=False, soft_wrap=True)
    console.print(apart(result), highlight=False, soft_wrap=True)
    console.print(f"report: {page}", highlight=False, soft_wrap=True, markup=False)
