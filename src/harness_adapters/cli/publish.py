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
    out: Annotated[Path, typer.Option("--out", help="Directory (--gguf: or file) to write.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Base and adapter as one model: the default.")
    ] = False,
    gguf: Annotated[
        bool, typer.Option("--gguf", help="The adapter alone as a GGUF file, for llama.cpp.")
    ] = False,
) -> None:
    """Write base and adapter as one model, or the adapter as GGUF, for other programs."""
    from harness_adapters.adapters.lora_gguf import write_gguf
    from harness_adapters.adapters.merge import merge as write_merged
    from harness_adapters.adapters.source import find_adapter
    from harness_adapters.errors import ConfigError

    if merge and gguf:
        raise ConfigError("--merge and --gguf: one form at a time")
    found = find_adapter(adapter)
    base = found.base(lambda text: typer.echo(text, err=True))
    typer.echo(write_gguf(found, base, out) if gguf else write_merged(found, base, out))
