"""What all samples tell, and the form of one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

BEFORE = "def add(a, b):\n    return a - b\n"
AFTER = "def add(a, b):\n    return a + b\n"
TEST = "python3 -m unittest test_sums.py"


@dataclass(frozen=True)
class Sample:
    format: str
    records: list[Any]
    counts: tuple[int, int, int, int, int, int]
    """sessions, turns, tool calls, results, exit codes known, edits"""
    document: bool = False
    """One JSON document per record instead of JSON Lines."""

    @property
    def text(self) -> str:
        if self.document:
            return json.dumps(self.records[0], indent=1)
        return "".join(json.dumps(record) + "\n" for record in self.records)
