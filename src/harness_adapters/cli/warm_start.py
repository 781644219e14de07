"""`harness-adapters warm-start`: make the base that reinforcement learning starts from."""

from __future__ import annotations

import typer
from rich.console import Console

from harness_adapters.cli.options import ConfigFile, HarnessName, Model, Overrides, overrides
from harness_adapters.cli.running import run as run_work


def warm_start(
    config: ConfigFile = None,
    set_: Overrides = None,
    model: Model = None,
    harness: HarnessName = None,
) -> None:
    """Record oracle demonstrations in the real agent and fine-tune the model on them briefly.

    The result is cached; the same settings give the same directory again. Prints it.
    """
    from harness_adapters import config as settings_file
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.progress import ConsoleReporter
    from harness_adapters.training.run import shared_dataset
    from harness_adapters.training.warm_base import warm_base

    settings = settings_file.load(config, overrides(set_, model=model, harness=harness))
    with ConsoleReporter(Console(stderr=True)) as reporter:
        raw = resolve_model(
            settings.model.path,
            progress=reporter.say,
            trust_remote_code=settings.model.trust_remote_code,
        )
        base = run_work(warm_base(settings, raw, shared_dataset(settings), reporter))
    typer.echo(str(base.model_dir))
