"""The manifest: one row for each task, as JSON Lines for people and as Parquet for the Hub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_adapters.errors import StoreError

JSON_LINES = "manifest.jsonl"
PARQUET = "manifest.parquet"
_TYPES = {
    "task": "string",
    "split": "string",
    "type": "string",
    "path": "string",
    "source": "string",
    "format": "string",
    "session": "string",
    "first_turn": "int64",
    "last_turn": "int64",
    "licence": "string",
    "check": "string",
    "sha256": "string",
    "verifier_runs": "int64",
    "files": "int64",
    "bytes": "int64",
    "verify_seconds": "double",
    "degenerate_attempts": "int64",
    "hunks": "int64",
    "mutation_score": "double",
    "mutants": "int64",
    "guess_rate": "double",
    "guesses": "int64",
}
"""Columns and their Arrow types; a measurement that a task's gates don't take is null."""


def write_manifest(out: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write both files; each is either the old one or the new one, whatever happens."""
    import pyarrow
    from pyarrow import parquet

    lines = "".join(json.dumps(dict(row), ensure_ascii=False) + "\n" for row in rows)
    partial = out / f".{JSON_LINES}.partial"
    partial.write_text(lines, "utf-8")
    partial.replace(out / JSON_LINES)
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(of)) for name, of in _TYPES.items()])
    table = pyarrow.Table.from_pylist([dict(row) for row in rows], schema=schema)
    partial = out / f".{PARQUET}.partial"
    parquet.write_table(table, partial)
    partial.replace(out / PARQUET)


def read_manifest(out: Path) -> Iterator[dict[str, Any]]:
    """The rows. Raises StoreError where there is no manifest, or it is damaged."""
    path = out / JSON_LINES
    try:
        lines = path.read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
    except FileNotFoundError:
        raise StoreError(f"{out}: no {JSON_LINES}; give the directory that `synth` wrote") from None
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: damaged ({error}); run `synth --resume` to write it") from None
    yield from rows
