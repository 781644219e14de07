"""`harness-adapters harness`: install and list agent CLIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from harness_adapters.engine import ChatFormat
    from harness_adapters.harness import Harness

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
def list_(
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Play one session of each installed harness and profile on a scripted model, and "
            "show the size and the hash of its system prompt and tools as they were sent.",
        ),
    ] = False,
    model: Annotated[
        str, typer.Option("--model", help="Whose tokens --measure counts.")
    ] = "smollm2",
) -> None:
    """Known harnesses, their pinned versions, and where they are installed."""
    from harness_adapters.errors import HarnessError
    from harness_adapters.harness.registry import get_harness, known_harnesses

    chat = _chat_of(model) if measure else None
    for name in known_harnesses():
        harness = get_harness(name)
        try:
            where = str(harness.installed())
        except HarnessError:
            hint = f"not installed (harness-adapters harness install {name})"
            typer.echo(f"{name} {harness.version}  {hint}")
            continue
        typer.echo(f"{name} {harness.version}  {where}")
        if chat is not None:
            _show_openings(harness, chat, model)


def _chat_of(model: str) -> ChatFormat:
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.engine.models import load_chat_format

    console = Console(stderr=True)
    return load_chat_format(
        resolve_model(model, progress=lambda text: console.print(text, highlight=False))
    )


def _show_openings(harness: Harness, chat: ChatFormat, model: str) -> None:
    from harness_adapters.cli.running import run
    from harness_adapters.harness import Profile
    from harness_adapters.rollout.opening import play_opening

    for profile in Profile:
        opening = run(play_opening(harness, profile))
        typer.echo(
            f"  {profile:<6}{opening.tokens(chat):>7,} tokens ({model})"
            f"{len(opening.text):>8,} characters  sha256 {opening.sha256}"
        )
