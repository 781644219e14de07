"""Share of prompt tokens that the engine had in its prefix cache, by harness and adapter version.

    python benchmarks/prefix_cache.py RUN [RUN ...]

Reads the sessions of run directories, as the engine counted them. Each adapter version has a cache
of its own, so the first session of a version pays for the whole opening; the second figure leaves
these out. A Markdown table, one row for a run and phase.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

from harness_adapters.records import Rollout
from harness_adapters.store import Store


def rows(root: Path) -> list[str]:
    """The table's lines for one run."""
    store = Store(root)
    try:
        sessions = store.rollouts()
    finally:
        store.close()
    by_phase: dict[tuple[str, str, str], list[Rollout]] = defaultdict(list)
    for session in sessions:
        if session.turns and session.arm != "oracle":
            by_phase[session.harness, session.profile, session.phase].append(session)
    return [row(root, key, played) for key, played in sorted(by_phase.items())]


def row(root: Path, key: tuple[str, str, str], played: list[Rollout]) -> str:
    """One line: all sessions, and those that were not the first of their adapter version."""
    first: set[str] = set()
    seen: set[str] = set()
    for session in sorted(played, key=lambda session: session.turns[0].started):
        if session.adapter not in seen:
            seen.add(session.adapter)
            first.add(session.id)
    later = [session for session in played if session.id not in first]
    harness, profile, phase = key
    return (
        f"| {root.name} | {harness} {profile} | {phase} | {len(played)} | {len(seen)} "
        f"| {share(played)} | {share(later)} |"
    )


def share(sessions: list[Rollout]) -> str:
    """Cached part of the prompt tokens of all turns."""
    turns = [turn for session in sessions for turn in session.turns]
    prompt = sum(len(turn.prompt_ids) for turn in turns)
    return f"{sum(turn.cached_tokens for turn in turns) / prompt:.1%}" if prompt else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    print(
        "| run | harness | phase | sessions | adapter versions | cached | without first sessions |"
    )
    print("|---|---|---|---|---|---|---|")
    for root in parser.parse_args().runs:
        print("\n".join(rows(root)))


if __name__ == "__main__":
    main()
