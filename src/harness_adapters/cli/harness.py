"""`harness-adapters harness`: install and list agent CLIs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(help="Install and list agent harnesses.", no_args_is_help=True)


@app.command("install")
def install(
    name: Annotated[str, typer.Argument(help="Which harness, for example `pi`.")],
    version: Annotated[
        str | None, typer.Option(help="Only the version that the lock file pins.")
    ] = None,
) -> None:
    """Install a harness with its own runtime; does nothing where it is already there."""
    from harness_adapters.harness.install import install as install_harness

    console = Console()
    install_harness(name, version, say=lambda text: console.print(text, highlight=False))


@app.command("list")
def list_() -> None:
    """Known harnesses, their pinned versions, and where they are installed."""
    from harness_adapters.errors import HarnessError
    from harness_adapters.harness.registry import get_harness, known_harnesses

    for name in known_harnesses():
        harness = get_harness(name)
        try:
            where = str(harness.installed())
        except HarnessError:
            where = f"not installed (harness-adapters harness install {name})"
        typer.echo(f"{name} {harness.version}  {where}")
