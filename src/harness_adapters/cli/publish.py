"""`harness-adapters card`, `push` and `export`: an adapter for others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

Out = Annotated[Path | None, typer.Option("--out", help="Directory to write.")]


def card(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN", help="A trained run directory.")],
    out: Out = None,
) -> None:
    """Write the run's best adapter with its model card, ready to be used and published."""
    from harness_adapters.adapters.card import publish
    from harness_adapters.progress import ConsoleReporter

    with ConsoleReporter(Console(stderr=True)) as reporter:
        where = publish(run_dir, out, reporter)
    typer.echo(where)


def push(
    directory: Annotated[Path, typer.Argument(help="What `card` wrote.")],
    repository: Annotated[str, typer.Argument(help="NAME/REPOSITORY on the Hub.")],
    private: Annotated[bool, typer.Option("--private", help="Only you can see it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be uploaded.")
    ] = False,
) -> None:
    """Upload a published adapter to the Hub that huggingface_hub is set up for."""
    from harness_adapters.adapters import hub

    if dry_run:
        for file in hub.files_of(directory):
            typer.echo(f"{file.stat().st_size:>12,}  {file.relative_to(directory)}")
    else:
        typer.echo(hub.push(directory, repository, private=private))


def export(
    adapter: Annotated[Path, typer.Argument(help="An adapter, or a run.")],
    out: Annotated[Path, typer.Option("--out", help="Directory to write.")],
    merge: Annotated[bool, typer.Option("--merge", help="Base and adapter as one model.")] = True,
) -> None:
    """Write base and adapter merged into one model, for programs that know no adapters."""
    from harness_adapters.adapters.merge import merge as write_merged
    from harness_adapters.adapters.source import find_adapter

    del merge  # the only form there is
    found = find_adapter(adapter)
    typer.echo(write_merged(found, found.base(lambda text: typer.echo(text, err=True)), out))
