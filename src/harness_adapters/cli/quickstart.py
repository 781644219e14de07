"""`harness-adapters quickstart`: the whole way on the embedded model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import EngineUrl, Model, Overrides, overrides


def quickstart(
    run_dir: Annotated[
        Path, typer.Option("--run", help="The run directory; an interrupted one is continued.")
    ] = Path("runs/quickstart"),
    set_: Overrides = None,
    model: Model = None,
    engine: EngineUrl = None,
) -> None:
    """Install pi, prepare the model, train its adapter for pi, evaluate it, write the report."""
    from harness_adapters import config as settings_file
    from harness_adapters.evaluation.compare import headline
    from harness_adapters.harness.install import install
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.report.page import write_report
    from harness_adapters.training.pipeline import train_and_evaluate
    from harness_adapters.training.run import open_run

    console = Console()
    settings = settings_file.load(None, overrides(set_, model=model, engine=engine))
    with ConsoleReporter(console) as reporter:
        reporter.phase(f"installing {settings.harness.name} and its own node")
        install(settings.harness.name, say=reporter.say)
        run = open_run(run_dir, settings, resume=True)
        result = asyncio.run(train_and_evaluate(run, reporter))
        reporter.phase("writing the report")
        page = write_report(run_dir)
    best = run.store.fact("best") or {}
    adapter = run_dir / "adapters" / str(best.get("adapter", ""))
    console.print()
    console.print(headline(result), style="bold", highlight=False)
    console.print(f"report:  {page}", highlight=False)
    console.print(f"adapter: {adapter}", highlight=False)
    console.print(
        "next:    open the report; `harness-adapters rollout --task "
        f"{run_dir}/tasks/<task> --show` plays one session;\n"
        "         `harness-adapters train RUN --set train.steps=32` trains longer; "
        "recipes/ holds the quoted runs",
        highlight=False,
    )
