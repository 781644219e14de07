"""Which licence a source of sessions has: named for all, or by a table."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness_adapters.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Licences:
    """Looks a file up by its path's end, the longest first; else `default`."""

    default: str = ""
    by_file: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, path: Path) -> str:
        """SPDX expression, or empty where none is known."""
        parts = path.parts
        for start in range(len(parts)):
            found = self.by_file.get("/".join(parts[start:]).lstrip("/"))
            if found is not None:
                return found
        return self.default


def read_licences(table: Path | None, default: str) -> Licences:
    """From a table with tabs whose columns `file` and `licence` (or `license`) are named.

    Raises ConfigError where it can't be read or has no such columns.
    """
    if table is None:
        return Licences(default)
    try:
        with table.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{table}: can't be read as a table ({error})") from None
    key = next((name for name in ("licence", "license") if rows and name in rows[0]), "")
    if not key or "file" not in rows[0]:
        raise ConfigError(f"{table}: needs columns `file` and `licence`, separated by tabs")
    by_file = {row["file"]: (row[key] or "").strip() for row in rows if row["file"]}
    return Licences(default, by_file)
