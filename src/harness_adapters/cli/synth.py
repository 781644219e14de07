"""`harness-adapters synth`: training tasks out of recorded agent sessions."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness_adapters.cli.synth_build import BuildByDefault, register

app = typer.Typer(
    cls=BuildByDefault,
    help="Make training tasks out of recorded agent sessions.",
    no_args_is_help=True,
)
register(app)


@app.command()
def read(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILES", help="Session files, folders, or hf://datasets/OWNER/NAME."
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per file.")] = False,
) -> None:
    """Say what session files hold; exit with 1 when one can't be read."""
    from harness_adapters.synthesis.traces.finding import find_files
    from harness_adapters.synthesis.traces.reading import count_file
    from harness_adapters.text import visible

    failed = False
    table = Table("file", "format", *(_COLUMNS.values()), box=None, pad_edge=False)
    errors: list[str] = []
    for found in find_files(files):
        report = count_file(found.path)
        failed |= report.error is not None and found.named
        if as_json:
            typer.echo(json.dumps(report.line()))
            continue
        counts = (str(getattr(report.counts, column)) for column in _COLUMNS)
        table.add_row(Text(visible(report.file, one_line=True)), report.format or "-", *counts)
        if report.error is not None:
            errors.append(visible(report.error, one_line=True))
    if not as_json:
        Console().print(table)
        for error in errors:
            typer.echo(error, err=True)
    if failed:
        raise typer.Exit(1)


_COLUMNS = {
    "sessions": "sessions",
    "turns": "turns",
    "tool_calls": "calls",
    "results": "results",
    "exit_codes_known": "exit codes",
    "edits": "edits",
    "broken_lines": "broken",
}
