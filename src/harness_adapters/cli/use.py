"""`harness-adapters use` and `serve`: an adapter in its user's hands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness_adapters.cli.options import EngineUrl, Model, Overrides, overrides
from harness_adapters.cli.running import run as run_work

Guard = Annotated[
    str, typer.Option("--guard", help="default (the shipped rules), off, or a policy FILE.toml.")
]


def use(
    harness: Annotated[str, typer.Argument(help="pi, opencode or hermes.")],
    adapter: Annotated[
        Path, typer.Option("--adapter", help="A published adapter, one of a run, or a run.")
    ],
    more: Annotated[
        list[str] | None, typer.Argument(help="After --: words for the agent itself.")
    ] = None,
    model: Model = None,
    guard: Guard = "default",
    engine: EngineUrl = None,
    set_: Overrides = None,
) -> None:
    """Start engine, guard and the agent on an adapter, interactive, in this directory."""
    from harness_adapters.adapters.prompt import matches_prompt
    from harness_adapters.adapters.serving import base_of, serving_settings
    from harness_adapters.adapters.serving import use as start
    from harness_adapters.adapters.source import find_adapter
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.guard.policy import policy_named
    from harness_adapters.harness import Profile
    from harness_adapters.harness.registry import get_harness
    from harness_adapters.progress import ConsoleReporter

    agent = get_harness(harness)
    agent.installed()
    policy_named(guard)
    found = find_adapter(adapter)
    settings = serving_settings([found], overrides(set_, engine=engine))
    with ConsoleReporter(Console(stderr=True)) as reporter:
        base = (
            resolve_model(model, progress=reporter.say) if model else base_of([found], reporter.say)
        )
        if note := matches_prompt(found, agent, Profile(settings.harness.profile)):
            reporter.say(note)
        work = start(agent, found, base, settings, reporter, policy=guard, more=more or [])
        code = run_work(work)
    raise typer.Exit(code)


def serve(
    adapters: Annotated[list[Path], typer.Argument(help="Adapters of one base, or runs.")],
    model: Model = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    guard: Guard = "default",
    engine: EngineUrl = None,
    set_: Overrides = None,
) -> None:
    """An OpenAI and Anthropic endpoint with the adapters; the model's name chooses one."""
    from harness_adapters.adapters.serving import base_of, serving, serving_settings
    from harness_adapters.adapters.source import find_adapter
    from harness_adapters.engine.embedded import resolve_model
    from harness_adapters.progress import ConsoleReporter

    found = [find_adapter(one) for one in adapters]
    settings = serving_settings(found, overrides(set_, engine=engine))

    async def work() -> None:
        with ConsoleReporter(Console(stderr=True)) as reporter:
            base = (
                resolve_model(model, progress=reporter.say)
                if model
                else base_of(found, reporter.say)
            )
            async with serving(
                found, base, settings, reporter, host=host, port=port, policy=guard
            ) as served:
                typer.echo(served.address)
                reporter.say(f"models: {', '.join(served.models)}; Ctrl-C ends it")
                await asyncio.Event().wait()

    run_work(work())
