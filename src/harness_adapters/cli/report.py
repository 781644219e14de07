"""`harness-adapters report` and `watch`: a run as one self-contained web page, or as a live one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_adapters.cli.options import Overrides


def report(
    run: Annotated[Path, typer.Argument(help="A run or a sweep; it may still be running.")],
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    png: Annotated[bool, typer.Option(help="Write the plots as PNG, too.")] = True,
    set_: Overrides = None,
) -> None:
    """Write RUN/report/index.html: the result, the training curves and every test session.

    --set price.… keeps prices in the run: the page then shows dollars.
    """
    from harness_adapters.report.page import write_report
    from harness_adapters.report.sweep import write_sweep_report
    from harness_adapters.sweep.directory import is_sweep
    from harness_adapters.training.run import keep_prices

    if set_:
        keep_prices(run, set_)
    page = write_sweep_report(run) if is_sweep(run) else write_report(run, pngs=png)
    typer.echo(page)
    if open_ and typer.launch(page.absolute().as_uri()) != 0:
        typer.echo("no browser could be started; open the page above by hand", err=True)


def watch(
    run: Annotated[Path, typer.Argument(help="A run directory; it may not have begun.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
) -> None:
    """Serve the report's page live while the run trains or an evaluation plays."""
    import asyncio

    from harness_adapters.proxy.serving import address_of, listening, serve
    from harness_adapters.report.watch import Watch

    if not (run / "run.sqlite").is_file():
        typer.echo(f"{run}: no run there yet; the page waits for it", err=True)
    with listening(host, port) as sock:
        typer.echo(f"{address_of(sock)}/")
        asyncio.run(serve(Watch(run).app, sock))
