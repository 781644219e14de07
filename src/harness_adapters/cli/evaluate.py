"""`harness-adapters eval`: base against adapters on held-out tasks, paired."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness_adapters.cli.options import ConfigFile, EngineUrl, Model, Overrides, overrides
from harness_adapters.cli.options import harness_spec as whole
from harness_adapters.cli.running import run as run_work
from harness_adapters.errors import ConfigError

if TYPE_CHECKING:
    from harness_adapters.adapters.transfer import Request
    from harness_adapters.evaluation.matrix import Matrix

Adapters = Annotated[
    list[str] | None,
    typer.Option(
        "--adapters",
        help="base,PATH[,PATH…]: adapters or runs; all are compared with the first.",
    ),
]
Harnesses = Annotated[
    list[str] | None,
    typer.Option("--harness", help="With --adapters: the agents to play in; may be repeated."),
]
Tasks = Annotated[
    list[str] | None,
    typer.Option(
        "--tasks", help="How many held-out tasks; with --adapters also a dataset; may be repeated."
    ),
]


def evaluate(
    run_dir: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN]", help="A trained run; or the directory of an evaluation."),
    ] = None,
    adapters: Adapters = None,
    harness: Harnesses = None,
    adapter: Annotated[
        Path | None,
        typer.Option("--adapter", help="Another PEFT adapter than the run's best."),
    ] = None,
    tasks: Tasks = None,
    attempts: Annotated[int | None, typer.Option("--attempts", help="Sessions per task.")] = None,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Of sampling, in all arms.")
    ] = None,
    model: Model = None,
    config: ConfigFile = None,
    engine: EngineUrl = None,
    set_: Overrides = None,
) -> None:
    """Run base and adapters on the same held-out tasks; print the headline; write the report.

    Sessions that the directory already holds are not repeated: the same command continues.
    """
    from harness_adapters.adapters.transfer import REQUEST, Request

    count, dataset = _count_and_dataset(tasks)
    changes = overrides(set_, engine=engine)
    if attempts is not None:
        changes.append(f"eval.attempts={attempts}")
    if temperature is not None:
        changes.append(f"eval.temperature={temperature}")
    if adapters:
        names = [name for one in adapters for name in one.split(",") if name]
        harnesses = [whole(one) for one in harness or []]
        request = Request(names, harnesses, dataset, count, model, config, changes)
        _matrix(run_dir, request)
    elif run_dir is None:
        raise ConfigError("name a RUN, or adapters with --adapters base,PATH")
    elif (run_dir / REQUEST).is_file():
        _matrix(run_dir, Request.of(run_dir, changes))
    else:
        if harness or dataset or model or config:
            raise ConfigError(
                "--harness, --tasks DATASET, --model and --config go with --adapters: "
                f"--adapters base,{run_dir}"
            )
        if count is not None:
            changes.append(f"eval.tasks={count}")
        _run(run_dir, adapter, changes)


def _count_and_dataset(given: list[str] | None) -> tuple[int | None, Path | None]:
    count, dataset = None, None
    for one in given or []:
        if one.isdecimal():
            count = int(one)
            if count < 1:
                raise ConfigError("--tasks 0: at least one task")
        else:
            dataset = Path(one)
    return count, dataset


def _run(run_dir: Path, adapter: Path | None, changes: list[str]) -> None:
    from harness_adapters.evaluation.headline import apart
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.data import read_run
    from harness_adapters.report.page import write_report
    from harness_adapters.training.pipeline import evaluate_run
    from harness_adapters.training.run import reopen_run

    console = Console()
    with ConsoleReporter(console) as reporter:
        run = reopen_run(run_dir, changes)
        result = run_work(evaluate_run(run, adapter, reporter))
        reporter.phase("writing the report")
        page = write_report(run_dir)
    run.close()
    console.print(read_run(run_dir).headline(), style="bold", highlight=False, soft_wrap=True)
    console.print(apart(result), highlight=False, soft_wrap=True)
    console.print(f"report: {page}", highlight=False, soft_wrap=True, markup=False)


def _matrix(root: Path | None, request: Request) -> None:
    from harness_adapters.adapters.transfer import default_root, open_evaluation, play
    from harness_adapters.evaluation.headline import headline
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.page import write_report

    console = Console()
    where = root or default_root(request)
    with ConsoleReporter(console) as reporter:
        evaluation = open_evaluation(where, request, reporter)
        reporter.say(f"evaluation: {where}")
        matrix = run_work(play(evaluation, reporter))
        reporter.phase("writing the report")
        page = write_report(where)
    evaluation.run.close()
    for cell in matrix.cells:
        if cell.comparison is not None:
            text = headline(cell.comparison, name=f"{cell.arm} in {cell.harness}")
            console.print(text, style="bold", highlight=False, soft_wrap=True, markup=False)
        else:
            text = f"{cell.arm} in {cell.harness}: no task was scored with both arms"
            console.print(text, highlight=False, soft_wrap=True, markup=False)
    if len(matrix.cells) > 1:
        console.print(_table(matrix))
    console.print(f"report: {page}", highlight=False, soft_wrap=True, markup=False)


def _table(matrix: Matrix) -> Table:
    """Adapters x harnesses, in points of pass@1."""
    from harness_adapters.evaluation.headline import points

    plan = matrix.plan
    table = Table("adapter", *plan.harnesses, title=f"points against {plan.reference.label}")
    for arm in plan.others:
        cells = [cell for cell in matrix.cells if cell.arm == arm.label]
        table.add_row(escape(arm.label), *(escape(points(cell.comparison)) for cell in cells))
    return table
