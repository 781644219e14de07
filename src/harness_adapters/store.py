"""The run directory: `config.toml`, `run.sqlite`, `metrics.jsonl`, `audit.jsonl`, and the folders
`adapters/`, `checkpoints/`, `report/`. Everything a report shows can be rebuilt from it.

SQLite runs in WAL mode: the rollout process writes, the learner and reports read. A rollout and
its turns are one transaction, so a kill at any moment leaves whole rollouts only. Token ids are
stored as zlib-compressed little-endian int32, log-probabilities as float32.
"""

from __future__ import annotations

import array
import json
import os
import sqlite3
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import StoreError
from harness_adapters.records import (
    Conduct,
    Decision,
    Phase,
    Rollout,
    SessionEnd,
    ToolCall,
    Turn,
    Verdict,
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS rollouts (
    id TEXT PRIMARY KEY, phase TEXT NOT NULL, harness TEXT NOT NULL, profile TEXT NOT NULL,
    arm TEXT NOT NULL, adapter TEXT NOT NULL, version INTEGER NOT NULL, task TEXT NOT NULL,
    family TEXT NOT NULL, level INTEGER NOT NULL, grp TEXT NOT NULL, attempt INTEGER NOT NULL,
    step INTEGER NOT NULL, temperature REAL NOT NULL, score REAL, reward REAL, correct INTEGER,
    calls INTEGER NOT NULL, end TEXT NOT NULL, error TEXT NOT NULL, verifier_output TEXT NOT NULL,
    started REAL NOT NULL, seconds REAL NOT NULL, timings TEXT NOT NULL,
    conduct TEXT NOT NULL DEFAULT 'clean', blocked INTEGER NOT NULL DEFAULT 0,
    malformed INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS rollouts_by_phase ON rollouts (phase, arm, step, task, attempt);
CREATE TABLE IF NOT EXISTS turns (
    rollout TEXT NOT NULL REFERENCES rollouts (id), idx INTEGER NOT NULL, prompt_ids BLOB NOT NULL,
    output_ids BLOB NOT NULL, logprobs BLOB NOT NULL, adapter TEXT NOT NULL,
    version INTEGER NOT NULL, finish TEXT NOT NULL, text TEXT NOT NULL, calls TEXT NOT NULL,
    messages BLOB NOT NULL, started REAL NOT NULL, seconds REAL NOT NULL,
    cached_tokens INTEGER NOT NULL, PRIMARY KEY (rollout, idx));
CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

_COLUMNS = [
    "id",
    "phase",
    "harness",
    "profile",
    "arm",
    "adapter",
    "version",
    "task",
    "family",
    "level",
    "grp",
    "attempt",
    "step",
    "temperature",
    "score",
    "reward",
    "correct",
    "calls",
    "end",
    "error",
    "verifier_output",
    "started",
    "seconds",
    "timings",
    "conduct",
    "blocked",
    "malformed",
]
_LATER = {
    "conduct": "TEXT NOT NULL DEFAULT 'clean'",
    "blocked": "INTEGER NOT NULL DEFAULT 0",
    "malformed": "INTEGER NOT NULL DEFAULT 0",
}
"""Columns that a run directory of an earlier version lacks."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a session took of the engine; token counts over all its turns."""

    engine_seconds: float
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int


class Store:
    """One run directory, open for reading and writing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            for name in ("adapters", "checkpoints", "report"):
                (root / name).mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(root / "run.sqlite", timeout=60, isolation_level=None)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(SCHEMA)
            self._add_later_columns()
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"run directory {root}: {error}") from None

    @classmethod
    def existing(cls, root: Path) -> Store:
        """Open a run directory that must already be there."""
        if not (root / "run.sqlite").is_file():
            raise StoreError(f"{root} is not a run directory (no run.sqlite in it)")
        return cls(root)

    def _add_later_columns(self) -> None:
        there = {row[1] for row in self._db.execute("PRAGMA table_info(rollouts)")}
        for name in sorted(set(_LATER) - there):
            try:
                self._db.execute(f"ALTER TABLE rollouts ADD COLUMN {name} {_LATER[name]}")
            except sqlite3.OperationalError as error:
                if "duplicate column" not in str(error):  # another process was faster
                    raise

    def close(self) -> None:
        """Close the database; the object can't be used afterwards."""
        self._db.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StoreError(
                f"run directory {self.root}: {error}; free space or rights, then run it again"
            ) from None

    def _read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"run directory {self.root}: {error}") from None

    def add(self, rollout: Rollout) -> None:
        """Write one rollout with its turns, whole or not at all; the same id replaces."""
        marks = ", ".join("?" * len(_COLUMNS))
        with self._transaction():
            self._db.execute("DELETE FROM turns WHERE rollout = ?", (rollout.id,))
            self._db.execute(
                f"INSERT OR REPLACE INTO rollouts ({', '.join(_COLUMNS)}) VALUES ({marks})",
                _rollout_row(rollout),
            )
            self._db.executemany(
                "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_turn_row(rollout.id, turn) for turn in rollout.turns],
            )

    def rollouts(
        self,
        *,
        phase: Phase | None = None,
        arm: str | None = None,
        step: int | None = None,
        harness: str | None = None,
        ids: Sequence[str] | None = None,
        turns: bool = True,
    ) -> list[Rollout]:
        """Rollouts that match, oldest first; `turns=False` leaves their turns out (fast)."""
        clauses, values = ["1"], []
        for column, value in (("phase", phase), ("arm", arm), ("step", step), ("harness", harness)):
            if value is not None:
                clauses.append(f"{column} = ?")
                values.append(value)
        if ids is not None:
            clauses.append(f"id IN ({', '.join('?' * len(ids))})")
            values += ids
        query = (
            f"SELECT {', '.join(_COLUMNS)} FROM rollouts WHERE {' AND '.join(clauses)}"
            " ORDER BY started, id"
        )
        rows = self._read(query, values)
        return [_rollout(row, self._turns(row[0]) if turns else []) for row in rows]

    def _turns(self, rollout: str) -> list[Turn]:
        rows = self._read("SELECT * FROM turns WHERE rollout = ? ORDER BY idx", (rollout,))
        return [_turn(row) for row in rows]

    def verdicts(self) -> Counter[tuple[str, str, str]]:
        """(decision, rule, goal) -> calls, of all calls that weren't simply allowed."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for (calls,) in self._read("SELECT calls FROM turns WHERE calls != '[]'", ()):
            for _, _, _, decision, rule, _, _, *later in json.loads(calls):
                if decision != Decision.ALLOW:
                    counts[decision, rule, str(later[0]) if later else ""] += 1
        return counts

    def usage(self) -> dict[str, Usage]:
        """Rollout id -> what its turns took of the engine."""
        found: dict[str, Usage] = {}
        query = "SELECT rollout, seconds, prompt_ids, cached_tokens, output_ids FROM turns"
        try:
            for rollout, seconds, prompt, cached, output in self._db.execute(query):
                u = found.get(rollout, Usage(0.0, 0, 0, 0))
                found[rollout] = Usage(
                    u.engine_seconds + seconds,
                    u.prompt_tokens + len(zlib.decompress(prompt)) // 4,
                    u.cached_tokens + cached,
                    u.output_tokens + len(zlib.decompress(output)) // 4,
                )
        except sqlite3.Error as error:
            raise StoreError(f"run directory {self.root}: {error}") from None
        return found

    def set_fact(self, key: str, value: Any) -> None:
        """Remember a JSON value under a key: progress, hashes, evaluation results."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (key, json.dumps(value)))

    def fact(self, key: str, default: Any = None) -> Any:
        """The JSON value remembered under `key`, else `default`."""
        rows = self._read("SELECT value FROM facts WHERE key = ?", (key,))
        return json.loads(rows[0][0]) if rows else default

    def append_metrics(self, record: dict[str, Any]) -> None:
        """Add one line to `metrics.jsonl`."""
        path = self.root / "metrics.jsonl"
        with path.open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # a kill cut the last line: keep it from eating this one
                    file.write(b"\n")
            file.write(json.dumps(record).encode() + b"\n")

    def metrics(self) -> list[dict[str, Any]]:
        """All whole lines of `metrics.jsonl`; a line cut by a kill is left out."""
        path = self.root / "metrics.jsonl"
        records: list[dict[str, Any]] = []
        for line in path.read_bytes().splitlines() if path.is_file() else []:
            try:
                records.append(json.loads(line))
            except ValueError:
                continue
        return records


def _pack(values: Sequence[int] | Sequence[float], code: str) -> bytes:
    data = array.array(code, values)
    if sys.byteorder == "big":
        data.byteswap()
    return zlib.compress(data.tobytes(), 1)


def _unpack(blob: bytes, code: str) -> array.array[Any]:
    data: array.array[Any] = array.array(code)
    data.frombytes(zlib.decompress(blob))
    if sys.byteorder == "big":
        data.byteswap()
    return data


def _rollout_row(r: Rollout) -> tuple[Any, ...]:
    correct = None if r.correct is None else int(r.correct)
    return (
        r.id, r.phase, r.harness, r.profile, r.arm, r.adapter, r.version, r.task, r.family,
        r.level, r.group, r.attempt, r.step, r.temperature, r.score, r.reward, correct, r.calls,
        r.end, r.error, r.verifier_output, r.started, r.seconds, json.dumps(r.timings), r.conduct,
        r.blocked, r.malformed,
    )  # fmt: skip


def _rollout(row: tuple[Any, ...], turns: list[Turn]) -> Rollout:
    v = dict(zip(_COLUMNS, row, strict=True))
    v["group"] = v.pop("grp")
    v["phase"] = Phase(v["phase"])
    v["end"] = SessionEnd(v["end"])
    v["conduct"] = Conduct(v["conduct"])
    v["correct"] = None if v["correct"] is None else bool(v["correct"])
    v["timings"] = json.loads(v["timings"])
    return Rollout(turns=turns, **v)


def _turn_row(rollout: str, t: Turn) -> tuple[Any, ...]:
    calls = [
        [c.id, c.name, c.arguments, c.verdict.decision, c.verdict.rule, c.verdict.reason,
         c.malformed, c.verdict.goal, c.verdict.conduct]
        for c in t.calls
    ]  # fmt: skip
    messages = zlib.compress(json.dumps(t.new_messages).encode(), 6)
    return (
        rollout, t.index, _pack(t.prompt_ids, "i"), _pack(t.output_ids, "i"),
        _pack(t.logprobs, "f"), t.adapter, t.version, t.finish, t.text, json.dumps(calls),
        messages, t.started, t.seconds, t.cached_tokens,
    )  # fmt: skip


def _verdict(decision: str, rule: str, reason: str, goal: str = "", conduct: str = "") -> Verdict:
    """Verdicts of an earlier version end after the reason."""
    return Verdict(Decision(decision), rule, reason, goal, Conduct(conduct or Conduct.CLEAN))


def _turn(row: tuple[Any, ...]) -> Turn:
    calls = [
        ToolCall(i, n, a, _verdict(d, rule, reason, *later), bool(malformed))
        for i, n, a, d, rule, reason, malformed, *later in json.loads(row[9])
    ]
    return Turn(
        index=row[1],
        prompt_ids=_unpack(row[2], "i").tolist(),
        output_ids=_unpack(row[3], "i").tolist(),
        logprobs=_unpack(row[4], "f").tolist(),
        adapter=row[5],
        version=row[6],
        finish=row[7],
        text=row[8],
        calls=calls,
        new_messages=json.loads(zlib.decompress(row[10])),
        started=row[11],
        seconds=row[12],
        cached_tokens=row[13],
    )
