"""A file holds one number and nothing else."""

import math
from pathlib import Path

from reading import UnreadableError, read, short


def check(workdir: Path, path: str, value: float, tolerance: float) -> list[str]:
    """One message, or none."""
    try:
        text = read(workdir, path).strip()
    except UnreadableError as error:
        return [str(error)]
    try:
        found = float(text)
    except ValueError:
        return [f"{path}: expected one number, found {short(text)}"]
    if math.isfinite(found) and abs(found - value) <= tolerance:
        return []
    return [f"{path}: expected {value}, found {short(text)}"]
