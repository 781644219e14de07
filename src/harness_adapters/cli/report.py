"""`harness-adapters report`: a run as one self-contained web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="A run directory; it may still be running.")],
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write RUN/report/index.html: the result, the training curves and every test session."""
    from harness_adapters.report.page import write_report

    page = write_report(run)
    typer.echo(page)
    if open_ and typer.launch(page.absolute().as_uri()) != 0:
        typer.echo("no browser could be started; open the page above by hand", err=True)
