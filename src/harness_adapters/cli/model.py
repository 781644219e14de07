"""`harness-adapters model`: make a model ready."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(no_args_is_help=True, help="Fetch, check and convert a model.")


@app.command("prepare")
def prepare(
    name: Annotated[str, typer.Argument(help="smollm2, qwen-coder, a directory or a repository.")],
) -> None:
    """Fetch, check and convert a model once; print its directory."""
    from harness_adapters.engine.embedded import resolve_model

    console = Console()
    typer.echo(str(resolve_model(name, progress=lambda text: console.print(text, highlight=False))))
