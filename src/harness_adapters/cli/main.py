"""The `harness-adapters` command: its verbs, and how errors reach the user."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, NoReturn

import typer

from harness_adapters import __version__
from harness_adapters.cli import (
    doctor,
    evaluate,
    guard,
    harness,
    model,
    publish,
    quickstart,
    report,
    rollout,
    sweep,
    synth,
    tasks,
    train,
    use,
    warm_start,
)
from harness_adapters.errors import HarnessAdaptersError
from harness_adapters.text import visible

app = typer.Typer(
    name="harness-adapters",
    help="Train one small LoRA adapter per model and agent harness, inside the real agent.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="rich",
)
app.command("quickstart")(quickstart.quickstart)
app.command("doctor")(doctor.doctor)
app.add_typer(tasks.app, name="tasks")
app.add_typer(harness.app, name="harness")
app.add_typer(model.app, name="model")
app.add_typer(guard.app, name="guard")
app.add_typer(synth.app, name="synth")
app.command("warm-start")(warm_start.warm_start)
app.command("rollout")(rollout.rollout)
app.command("train")(train.train)
app.command("eval")(evaluate.evaluate)
app.command("sweep")(sweep.sweep)
app.command("report")(report.report)
app.command("watch")(report.watch)
app.command("card")(publish.card)
app.command("push")(publish.push)
app.command("export")(publish.export)
app.command("use")(use.use)
app.command("serve")(use.serve)


def _version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line; every error that a user can mend is one line and an exit code."""
    try:
        app()
    except HarnessAdaptersError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):
            raise
        _fail(f"{error.filename or 'disk'}: {error.strerror}; free space or rights, run again", 2)


def _fail(text: str, code: int) -> NoReturn:
    print(f"harness-adapters: {visible(text)}", file=sys.stderr)
    sys.exit(code)
