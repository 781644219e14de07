"""`harness-adapters synth TRACES… --out DATASET`, and the pages that explain a session."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from harness_adapters.cli.options import (
    ConfigFile,
    EngineUrl,
    HarnessName,
    Model,
    Overrides,
    overrides,
)
from harness_adapters.cli.running import run as run_work


class BuildByDefault(TyperGroup):
    """`synth FILE …` is `synth build FILE …`."""

    default = "build"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name the command where the first word isn't one."""
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = [self.default, *args]
        return super().parse_args(ctx, args)


def build(
    traces: Annotated[
        list[str],
        typer.Argument(
            metavar="TRACES", help="Session files, folders, or hf://datasets/OWNER/NAME."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Directory of the data set to write.")],
    licence: Annotated[
        str, typer.Option(help="Licence of all sources (SPDX), where no table names it.")
    ] = "",
    licences: Annotated[
        Path | None,
        typer.Option(help="Table with the columns `file` and `licence`, separated by tabs."),
    ] = None,
    writer: Annotated[
        str, typer.Option(metavar="URL", help="OpenAI-compatible endpoint: http://HOST:PORT/v1.")
    ] = "",
    writer_model: Annotated[str, typer.Option(help="Model to ask for at the endpoint.")] = "model",
    budget: Annotated[
        int, typer.Option(min=0, help="Answers that may be asked of the endpoint.")
    ] = 10_000,
    token_budget: Annotated[
        int, typer.Option(min=0, help="Tokens that these answers may cost; 0: no limit.")
    ] = 0,
    decontaminate: Annotated[
        list[Path] | None,
        typer.Option(help="List of evaluation tasks: names, texts or JSON lines. Repeatable."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Sessions in work at one time.")] = 2,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what --out holds.")] = False,
) -> None:
    """Find units of work in sessions, prove each, and write what is left as Harbor tasks."""
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.synthesis.endpoint import Endpoint
    from harness_adapters.synthesis.gates.lists import read_lists
    from harness_adapters.synthesis.licences import read_licences
    from harness_adapters.synthesis.miners.all import MINERS
    from harness_adapters.synthesis.pipeline import Options
    from harness_adapters.synthesis.pipeline import build as build_dataset

    cache = out / ".synth" / "answers"
    options = Options(
        licences=read_licences(licences, licence),
        decontamination=read_lists(decontaminate or []),
        endpoint=(
            Endpoint(writer, writer_model, cache, budget, token_budget or None) if writer else None
        ),
        workers=workers,
        resume=resume,
    )
    with ConsoleReporter(Console(stderr=True)) as reporter:
        summary = run_work(build_dataset(traces, out, MINERS, options, reporter))
    table = Table("outcome", "sessions", box=None, pad_edge=False)
    for name, count in summary.funnel().items():
        table.add_row(name, str(count))
    console = Console()
    console.print(table)
    console.print(
        f"{len(summary.tasks)} tasks from {len(summary.sessions)} sessions in {out}; "
        "README.md there says more",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def explain(
    session: Annotated[str, typer.Argument(help="Session id, task id or key, or the start of it.")],
    out: Annotated[Path, typer.Option("--out", help="Data set that the session was used for.")],
) -> None:
    """Write a page that says what was found in a session and why it was kept or dropped."""
    from harness_adapters.synthesis.explain import write_page

    typer.echo(write_page(out, session))


def stratify(
    dataset: Annotated[Path, typer.Argument(help="Directory of Harbor tasks.")],
    run_dir: Annotated[
        Path, typer.Option("--run", help="Run directory, new or of an earlier call.")
    ],
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
    engine: EngineUrl = None,
    attempts: Annotated[int, typer.Option("-k", min=1, help="Sessions of each task.")] = 4,
    most: Annotated[
        int, typer.Option(min=1, help="Sessions where the first all ended alike.")
    ] = 16,
) -> None:
    """Measure how often a model solves each task in its agent."""
    from collections import Counter

    from harness_adapters import config as settings_file
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.run import open_run
    from harness_adapters.training.strata import Bucket
    from harness_adapters.training.strata import stratify as measure

    given = overrides(set_, model=model, harness=harness, engine=engine)
    place = str(dataset.absolute()).replace("\\", "\\\\").replace('"', '\\"')
    settings = settings_file.load(config, [*given, f'tasks.dataset="{place}"'])
    run = open_run(run_dir, settings, resume=True)
    try:
        with ConsoleReporter(Console(stderr=True)) as reporter:
            found = run_work(measure(run, reporter, attempts=attempts, most=most))
    finally:
        run.close()
    table = Table("task", "solved", "95%", "", box=None, pad_edge=False)
    for one in found:
        interval = f"{one.low:.0%} to {one.high:.0%}"
        table.add_row(Text(one.task), f"{one.solved}/{one.sessions}", interval, one.bucket)
    console = Console()
    console.print(table)
    counts = Counter(one.bucket for one in found)
    said = ", ".join(f"{counts[bucket]} {bucket}" for bucket in Bucket)
    console.print(f"{said}; {run_dir / 'strata.jsonl'}", markup=False, soft_wrap=True)


def push(
    dataset: Annotated[Path, typer.Argument(help="Directory that `synth` wrote.")],
    repository: Annotated[str, typer.Argument(help="OWNER/NAME on the Hub.")],
    private: Annotated[bool, typer.Option("--private", help="Only you can see it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be uploaded.")
    ] = False,
) -> None:
    """Upload a data set of tasks to the Hub that huggingface_hub is set up for."""
    from harness_adapters.synthesis import publishing

    if dry_run:
        for file in publishing.files_of(dataset):
            typer.echo(f"{file.stat().st_size:>12,}  {file.relative_to(dataset)}")
    else:
        typer.echo(publishing.push(dataset, repository, private=private))


def register(app: typer.Typer) -> None:
    """Add these verbs to `synth`."""
    app.command("build")(build)
    app.command("explain")(explain)
    app.command("stratify")(stratify)
    app.command("push")(push)
