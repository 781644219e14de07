"""Symbolic links in a task directory: none may lead out of the part that it lies in.

A task comes from somebody else. A link would let it read or hand to the agent whatever this machine
holds, or let `environment/files` show the agent the tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from harness_adapters.errors import TaskError

_PARTS = ("environment/files", "tests", "solution")
"""What is shown to somebody else than the rest; a link inside may point inside only."""
_FIXED = ("environment", *_PARTS)
"""Directories that must be directories themselves."""


def check_links(root: Path) -> None:
    """Raise TaskError for the first link that leads out of its part, or that stands for one."""
    for name in _FIXED:
        if (root / name).is_symlink():
            raise TaskError(
                f"{root / name}: is a symbolic link; put the directory itself in its place"
            )
    for link in _links(root):
        part = next((root / p for p in _PARTS if link.is_relative_to(root / p)), root)
        try:
            target = link.resolve()
        except (OSError, RuntimeError):  # a loop, which 3.11 and 3.12 report as a RuntimeError
            raise TaskError(f"{link}: a symbolic link that leads nowhere; remove it") from None
        if not target.is_relative_to(part.resolve()):
            raise TaskError(
                f"{link}: a symbolic link that leads out of {part}; put a copy in its place"
            )


def _links(root: Path) -> Iterator[Path]:
    for directory, directories, files in os.walk(root):
        yield from (
            path
            for name in sorted([*directories, *files])
            if (path := Path(directory, name)).is_symlink()
        )
