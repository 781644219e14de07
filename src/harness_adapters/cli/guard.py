"""`harness-adapters guard`: the audit proxy, and the check of an audit log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_adapters.cli.guard_bench import bench

if TYPE_CHECKING:
    from harness_adapters.guard import Policy

app = typer.Typer(
    help="Judge and log the tool calls of any agent; check the log.", no_args_is_help=True
)
app.command()(bench)


@app.command()
def serve(
    upstream: Annotated[
        str, typer.Option(help="Address of the model server, for example http://127.0.0.1:8000.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    name: Annotated[str | None, typer.Option(help="For `list` and `stop`.")] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="Audit log; one for all proxies by default.")
    ] = None,
    log_only: Annotated[
        bool, typer.Option("--log-only", help="Block nothing, only write verdicts down.")
    ] = False,
    deny: Annotated[
        list[str] | None,
        typer.Option(metavar="REGEX", help="Block calls with this in their arguments; repeatable."),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help="default (the shipped rules), off, FILE.toml, or MODULE:NAME."),
    ] = None,
    harness: Annotated[str, typer.Option(help="Name of the agent, for the log.")] = "",
    session: Annotated[str, typer.Option(help="Name of the session, for the log.")] = "proxy",
    workdir: Annotated[
        Path | None, typer.Option(help="Where the agent works; default: the current directory.")
    ] = None,
    policy_seconds: Annotated[
        float, typer.Option(min=0.001, help="A verdict that takes longer is a block.")
    ] = 5.0,
) -> None:
    """Run an audit proxy in the foreground; its address is the first line that it prints."""
    from harness_adapters.guard.audit import AuditLog
    from harness_adapters.paths import guard_dir
    from harness_adapters.proxy import Judging, ProxySettings
    from harness_adapters.proxy.serving import run_until_stopped

    settings = ProxySettings(
        upstream=upstream,
        session=session,
        harness=harness,
        workdir=str(workdir or Path.cwd()),
    )
    judging = Judging(
        policy=policy_of_options(policy, deny or []),
        audit=AuditLog(log or guard_dir() / "audit.jsonl"),
        log_only=log_only,
        seconds=policy_seconds,
    )
    run_until_stopped(settings, judging, host, port, name=name, say=typer.echo)


def policy_of_options(name: str | None, patterns: list[str]) -> Policy:
    """By --policy, or blocks by --deny; the shipped rules without both. Raises ConfigError."""
    import re

    from harness_adapters.errors import ConfigError
    from harness_adapters.guard.policies import DenyPatterns, DenyRule
    from harness_adapters.guard.policy import policy_named, policy_of_code

    if patterns and name is not None:
        raise ConfigError("--policy and --deny: give one of them")
    if patterns:
        try:
            compiled = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise ConfigError(f"--deny {error.pattern!r}: {error}") from None
        return DenyPatterns(
            [DenyRule("deny", one, f"{one.pattern} is not allowed") for one in compiled]
        )
    if name is not None and ":" in name and not name.endswith(".toml"):
        return policy_of_code(name)
    return policy_named(name or "default")


@app.command("list")
def list_() -> None:
    """The proxies that run on this machine for this user."""
    from harness_adapters.paths import guard_dir
    from harness_adapters.proxy.registry import all_running

    running = all_running(guard_dir())
    for one in running:
        mode = "log only" if one.log_only else "blocks"
        typer.echo(
            f"{one.name}  {one.address} -> {one.upstream}  {mode}  log {one.log}  process {one.pid}"
        )
    if not running:
        typer.echo("no proxy runs")


@app.command()
def stop(
    name: Annotated[str, typer.Argument(help="As `list` shows it.")],
) -> None:
    """End a proxy; answers that are under way get some seconds."""
    from harness_adapters.paths import guard_dir
    from harness_adapters.proxy.registry import stop as stop_proxy

    ended = stop_proxy(guard_dir(), name)
    typer.echo(f"stopped {ended.name} ({ended.address})")


@app.command("verify-log")
def verify_log(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An audit log.")],
    home: Annotated[
        Path | None, typer.Option(help="Key and heads, where they aren't this machine's own.")
    ] = None,
) -> None:
    """Check that a log is as it was written; exit with 1 and name the first bad entry if not."""
    from harness_adapters.guard.verify import verify_log as verify

    report = verify(file, home=home)
    for note in report.notes:
        typer.echo(f"note: {note}")
    if not report.ok:
        typer.echo(f"{file}: {report.problem} ({report.entries} good entries before that)")
        raise typer.Exit(1)
    typer.echo(f"{file}: {report.entries} entries, as they were written")
