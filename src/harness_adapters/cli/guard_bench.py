"""`harness-adapters guard bench`: recall, false positives and speed of a policy on a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def bench(
    attacks: Annotated[
        Path | None, typer.Option(help="JSON lines of calls that must be blocked.")
    ] = None,
    benign: Annotated[Path | None, typer.Option(help="JSON lines of calls that must pass.")] = None,
    sequences: Annotated[
        Path | None, typer.Option(help="JSON lines of labelled sequences of calls.")
    ] = None,
    context: Annotated[
        Path | None, typer.Option(help="JSON object: the world in which the labels hold.")
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(help="A policy file; the shipped rules without it.")
    ] = None,
    harness: Annotated[
        str, typer.Option(help="Agent whose shell is assumed; unknown: the strictest reading.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Judge a labelled corpus and say what went wrong."""
    from harness_adapters.errors import ConfigError
    from harness_adapters.guard import bench as benching
    from harness_adapters.guard.policy import EffectPolicy, TaskRules, default_policy, load_policy

    if attacks is None and benign is None and sequences is None:
        raise ConfigError("guard bench: give at least one of --attacks, --benign, --sequences")
    task = benching.read_context(context) if context is not None else TaskRules()
    rules = load_policy(policy) if policy is not None else default_policy()
    score = benching.bench(
        EffectPolicy(rules, task=task),
        task,
        benching.read_rows(attacks, attack=True) if attacks is not None else [],
        benching.read_rows(benign, attack=False) if benign is not None else [],
        benching.read_sequences(sequences) if sequences is not None else [],
        harness=harness,
    )
    if as_json:
        typer.echo(benching.as_json(score))
        return
    if score.recall is not None:
        typer.echo(f"attacks    {score.attacks:5}  blocked {score.recall:.1%}")
    if score.false_positive_rate is not None:
        typer.echo(f"benign     {score.benign:5}  blocked {score.false_positive_rate:.1%}")
    if score.sequences:
        typer.echo(f"sequences  {score.sequences:5}  right {score.sequences_right}")
    typer.echo(f"a decision takes {score.p50_ms} ms (median), {score.p99_ms} ms (99%)")
    for label, ids in (
        ("missed", score.missed),
        ("blocked though benign", score.false_positives),
        ("sequences wrong", score.sequences_wrong),
        ("flagged though benign", score.flagged_benign),
    ):
        if ids:
            typer.echo(f"{label}: {' '.join(ids)}")
