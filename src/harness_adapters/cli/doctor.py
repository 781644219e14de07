"""`harness-adapters doctor`: can this machine run it, and what to do where it can't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness_adapters.cli.options import ConfigFile, Model, Overrides, overrides

if TYPE_CHECKING:
    from harness_adapters.doctor import Check


def doctor(
    model: Model = None,
    gpus: Annotated[
        int, typer.Option("--gpus", min=1, help="With --model: how many GPUs there will be.")
    ] = 1,
    gpu_memory: Annotated[
        float | None,
        typer.Option("--gpu-memory", min=1, help="GiB of each; default: of this machine's GPU."),
    ] = None,
    prompt_tokens: Annotated[
        int, typer.Option("--prompt-tokens", min=1, help="System prompt and tools of the harness.")
    ] = 13_000,
    config: ConfigFile = None,
    set_: Overrides = None,
) -> None:
    """Check the machine; with --model, say instead whether that model fits on GPUs."""
    from harness_adapters.doctor import run_checks

    console = Console()
    if model is not None:
        _show(_plan(model, gpus, gpu_memory, prompt_tokens, overrides(set_), config), console)
        console.print("it fits, by arithmetic; no GPU was asked")
        return
    with console.status("looking"):
        checks = run_checks()
    _show(checks, console)
    console.print("this machine can train and evaluate")


def _plan(
    model: str,
    gpus: int,
    gpu_memory: float | None,
    prompt_tokens: int,
    changes: list[str],
    config: Path | None,
) -> list[Check]:
    from harness_adapters import config as settings_file
    from harness_adapters.doctor.hardware import gpu_memory_gib
    from harness_adapters.doctor.memory_plan import memory_plan
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.errors import ConfigError

    size = gpu_memory or gpu_memory_gib()
    if size is None:
        raise ConfigError("doctor --model: no GPU here to measure; say --gpu-memory GIB")
    settings = settings_file.load(config, changes)
    directory = resolve_model(
        model, trust_remote_code=settings.model.trust_remote_code, weights=False
    )
    return memory_plan(directory, settings, gpus=gpus, gpu_gib=size, trunk=prompt_tokens)


def _show(checks: list[Check], console: Console) -> None:
    """Findings, then what to do about them. Exits with 1 where something blocks."""
    from harness_adapters.doctor import Importance

    table = Table(box=None, pad_edge=False)
    for column in ("", "check", "found"):
        table.add_column(column, overflow="fold")
    for check in checks:
        if check.ok:
            mark = Text("ok", style="green")
        elif check.importance is Importance.WISHED:
            mark = Text("note", style="yellow")
        else:
            mark = Text("FAIL", style="bold red")
        table.add_row(mark, check.name, Text(check.detail))
    console.print(table)

    remedies = [check for check in checks if not check.ok]
    if remedies:
        console.print()
        for check in sorted(remedies, key=lambda check: not check.blocks):
            console.print(Text(f"{check.name}: {check.remedy}"))
    blocking = sum(check.blocks for check in checks)
    console.print()
    if blocking:
        console.print(
            f"{blocking} of {len(checks)} checks failed: repair them, then run this again"
        )
        raise typer.Exit(1)
