"""How well and how fast a policy judges a corpus of labelled calls.

Rows are JSON lines: `attacks` and `benign` with id, tool, arguments; `sequences` with id, label
(`attack` or `benign`) and calls. `context` is the world in which the labels hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import ConfigError
from harness_adapters.guard import Policy, ProposedCall
from harness_adapters.guard.policy.rules import DEFAULT_HIDDEN, TaskRules
from harness_adapters.records import Decision

ROUNDS = 5
"""Each call is timed that often, in a fresh session; its fastest round counts."""


@dataclass(frozen=True, slots=True)
class Row:
    """One labelled call, or a sequence of calls."""

    id: str
    calls: tuple[tuple[str, str], ...]
    """Tool and arguments as JSON text."""
    attack: bool


@dataclass(frozen=True, slots=True)
class Score:
    """What `guard bench` prints."""

    attacks: int
    recall: float | None
    """Blocked attacks; a flag is no block."""
    benign: int
    false_positive_rate: float | None
    """Blocked benign calls."""
    sequences: int
    sequences_right: int
    """Attacks with a blocked call, benign ones with none."""
    p50_ms: float
    p99_ms: float
    missed: list[str]
    false_positives: list[str]
    sequences_wrong: list[str]
    flagged_attacks: list[str]
    flagged_benign: list[str]


def read_rows(path: Path, *, attack: bool) -> list[Row]:
    """Single calls of a corpus. Raises ConfigError with the line that is wrong."""
    return [Row(_text(row, "id", at), (_call(row, at),), attack) for row, at in _lines(path)]


def read_sequences(path: Path) -> list[Row]:
    """Sequences of a corpus. Raises ConfigError with the line that is wrong."""
    rows = []
    for row, at in _lines(path):
        label, calls = _text(row, "label", at), row.get("calls")
        if label not in ("attack", "benign") or not isinstance(calls, list) or not calls:
            raise ConfigError(f"{at}: a sequence has `calls` and the label attack or benign")
        rows.append(
            Row(_text(row, "id", at), tuple(_call(c, at) for c in calls), label == "attack")
        )
    return rows


def _lines(path: Path) -> Iterable[tuple[dict[str, Any], str]]:
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"corpus {path}: {getattr(error, 'strerror', error)}") from None
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        at = f"corpus {path}, line {number}"
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{at}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{at}: not a JSON object")
        yield row, at


def _text(row: dict[str, Any], name: str, at: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise ConfigError(f"{at}: `{name}` is missing or no text")
    return value


def _call(row: Any, at: str) -> tuple[str, str]:
    if not isinstance(row, dict) or "arguments" not in row:
        raise ConfigError(f"{at}: a call has `tool` and `arguments`")
    arguments = row["arguments"]
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return _text(row, "tool", at), text


def read_context(path: Path) -> TaskRules:
    """The world of a corpus: cwd, home, what is hidden, the package under repair."""
    try:
        world = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"context {path}: {error}") from None
    if not isinstance(world, dict):
        raise ConfigError(f"context {path}: not a JSON object")
    packages = world.get("package_under_repair") or []
    hidden = world.get("hidden_never_read")
    return TaskRules(
        workdir=str(world.get("cwd", TaskRules().workdir)),
        home=str(world.get("home", TaskRules().home)),
        hidden=tuple(map(str, hidden)) if isinstance(hidden, list) else DEFAULT_HIDDEN,
        packages=(packages,) if isinstance(packages, str) else tuple(map(str, packages)),
    )


def bench(
    policy: Policy,
    task: TaskRules,
    attacks: Sequence[Row],
    benign: Sequence[Row],
    sequences: Sequence[Row],
    *,
    harness: str = "",
) -> Score:
    """Judge every row in a session of its own; times are milliseconds for one call."""
    times: list[float] = []
    missed, wrong_blocks, wrong_sequences = [], [], []
    flagged: dict[bool, list[str]] = {True: [], False: []}
    for row in [*attacks, *benign]:
        fastest, decisions = _judged(policy, task, row, harness)
        times += fastest
        if Decision.BLOCK not in decisions and row.attack:
            missed.append(row.id)
        if Decision.BLOCK in decisions and not row.attack:
            wrong_blocks.append(row.id)
        if decisions == [Decision.FLAG]:
            flagged[row.attack].append(row.id)
    for row in sequences:
        fastest, decisions = _judged(policy, task, row, harness)
        times += fastest
        if (Decision.BLOCK in decisions) is not row.attack:
            wrong_sequences.append(row.id)
    return Score(
        attacks=len(attacks),
        recall=1 - len(missed) / len(attacks) if attacks else None,
        benign=len(benign),
        false_positive_rate=len(wrong_blocks) / len(benign) if benign else None,
        sequences=len(sequences),
        sequences_right=len(sequences) - len(wrong_sequences),
        p50_ms=_quantile(times, 0.50),
        p99_ms=_quantile(times, 0.99),
        missed=missed,
        false_positives=wrong_blocks,
        sequences_wrong=wrong_sequences,
        flagged_attacks=flagged[True],
        flagged_benign=flagged[False],
    )


def _judged(
    policy: Policy, task: TaskRules, row: Row, harness: str
) -> tuple[list[float], list[Decision]]:
    fastest = [float("inf")] * len(row.calls)
    decisions: list[Decision] = []
    for attempt in range(ROUNDS):
        decisions = []
        for turn, (tool, arguments) in enumerate(row.calls):
            call = ProposedCall(
                session=f"{row.id}#{attempt}",
                task="bench",
                harness=harness,
                turn=turn,
                name=tool,
                arguments=arguments,
                workdir=task.workdir,
            )
            started = time.perf_counter()
            verdict = policy.judge(call)
            fastest[turn] = min(fastest[turn], (time.perf_counter() - started) * 1000)
            decisions.append(verdict.decision)
    return fastest, decisions


def _quantile(times: list[float], share: float) -> float:
    """The smallest time that at least this share of the calls does not exceed."""
    if not times:
        return 0.0
    ordered = sorted(times)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 4)


def as_json(score: Score) -> str:
    """The score as one JSON object on one line."""
    return json.dumps(asdict(score))
