"""JSON lines on standard output, kept clean of what libraries print."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO


def take_standard_output() -> TextIO:
    """The real standard output, for answers only; whatever else is printed goes to the log."""
    sys.stdout.flush()
    wire = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return wire


def say(wire: TextIO, record: dict[str, Any]) -> None:
    """Write one line."""
    wire.write(json.dumps(record) + "\n")
