"""`harness-adapters doctor`: can this machine run it, and what to do where it can't."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text


def doctor() -> None:
    """Check the machine: isolation, the agent, the engine, the model, room and memory."""
    from harness_adapters.doctor import Importance, run_checks

    console = Console()
    with console.status("looking"):
        checks = run_checks()
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
    console.print("this machine can train and evaluate")
