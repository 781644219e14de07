"""`harness-adapters quickstart`: the whole way on the embedded model."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import EngineUrl, Model, Overrides, overrides
from harness_adapters.cli.running import run as run_work


def quickstart(
    run_dir: Annotated[
        Path, typer.Option("--run", help="The run directory; an interrupted one is continued.")
    ] = Path("runs/quickstart"),
    minutes: Annotated[
        float,
        typer.Option(
            help="Train as many of train.steps as let all of this end in so many minutes."
        ),
    ] = 40.0,
    set_: Overrides = None,
    model: Model = None,
    engine: EngineUrl = None,
) -> None:
    """Install pi, prepare the model, train its adapter for pi, evaluate it, write the report."""
    from harness_adapters import config as settings_file
    from harness_adapters.evaluation.headline import apart
    from harness_adapters.harness.install import install
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.data import read_run
    from harness_adapters.report.page import write_report
    from harness_adapters.tasks import Split
    from harness_adapters.training.pipeline import train_and_evaluate
    from harness_adapters.training.run import open_run

    started = time.monotonic()
    console = Console()
    settings = settings_file.load(None, overrides(set_, model=model, engine=engine))
    with ConsoleReporter(console) as reporter:
        reporter.phase(f"installing {settings.harness.name} and its own node")
        install(settings.harness.name, say=reporter.say)
        run = open_run(run_dir, settings, resume=True)
        spent = (time.monotonic() - started) / 60
        result = run_work(train_and_evaluate(run, reporter, minutes=minutes - spent))
        reporter.phase("writing the report")
        page = write_report(run_dir)
    best = run.root / "adapters" / str(run.store.fact("best", {}).get("adapter"))
    base = run.store.fact("model_dir")
    task = run.tasks(Split.TEST)[0].root
    run.close()
    console.print()
    console.print(read_run(run_dir).headline(), style="bold", highlight=False, soft_wrap=True)
    for text in (
        apart(result),
        f"report:  {page}",
        f"adapter: {best}",
        f"next:    open the report; play one session with the adapter:\n"
        f"         harness-adapters rollout --task {task} --model {base} --adapter {best} --show\n"
        f"         train longer: harness-adapters train {run_dir} --resume --set train.steps=30, "
        f"then harness-adapters eval {run_dir}",
    ):
        console.print(text, highlight=False, soft_wrap=True, markup=False)
