"""Some files hold these texts, some paths don't exist."""

import os
from pathlib import Path

import file_equals


def check(workdir: Path, present: dict[str, str], absent: list[str]) -> list[str]:
    """One message for each path that is wrong."""
    found = [f"{path}: still there" for path in absent if os.path.lexists(workdir / path)]
    for path, text in present.items():
        found += file_equals.check(workdir, path, text)
    return found
