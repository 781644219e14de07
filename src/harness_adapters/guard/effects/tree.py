"""The files that a task came with, as the agent finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from harness_adapters.guard.effects.holes import (
    known,
)


class Tree(Protocol):
    """The files of the task as the agent finds them. Paths are absolute, as the agent sees them."""

    def read(self, path: str) -> str | None:
        """Text of a file; None where there is none."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory lies there."""
        ...

    def link(self, path: str) -> str | None:
        """Target of a symbolic link."""
        ...

    def glob(self, pattern: str) -> list[str]:
        """Paths that fit a pattern with holes."""
        ...


class DirectoryTree:
    """The agent's files, read from a directory of this machine that lies at `at` in the sandbox."""

    def __init__(self, root: Path, at: str, max_bytes: int = 1 << 20) -> None:
        self.root = root
        self.at = at.rstrip("/")
        self.max_bytes = max_bytes

    def _host(self, path: str) -> Path | None:
        if not known(path) or "\0" in path:
            return None
        if path == self.at:
            return self.root
        if not path.startswith(self.at + "/") or "/../" in path + "/":
            return None
        place = self.root / path[len(self.at) + 1 :]
        # Never through a link: it would be followed on this machine, not in the sandbox.
        steps = [place.parent, *place.parent.parents]
        inside = steps[: steps.index(self.root)] if self.root in steps else []
        return None if any(step.is_symlink() for step in inside) else place

    def read(self, path: str) -> str | None:
        """See Tree."""
        place = self._host(path)
        try:
            if place is None or place.is_symlink() or not place.is_file():
                return None
            if place.stat().st_size > self.max_bytes:
                return None
            return place.read_text(errors="replace")
        except OSError:
            return None

    def exists(self, path: str) -> bool:
        """See Tree."""
        place = self._host(path)
        return place is not None and (place.is_symlink() or place.exists())

    def link(self, path: str) -> str | None:
        """See Tree."""
        place = self._host(path)
        return str(place.readlink()) if place is not None and place.is_symlink() else None

    def glob(self, pattern: str) -> list[str]:
        """See Tree."""
        from harness_adapters.guard.effects.holes import components_meet

        parts = pattern.split("/")[1:]
        found = [""]
        for part in parts:
            grown: list[str] = []
            for base in found:
                if known(part):
                    grown.append(f"{base}/{part}")
                    continue
                place = self._host(base or "/")
                if place is None or place.is_symlink() or not place.is_dir():
                    if not (self.at + "/").startswith(base + "/"):
                        continue
                    # Above the tree nothing can be listed: the pattern stays a pattern.
                    return [pattern]
                grown += [
                    f"{base}/{child.name}"
                    for child in place.iterdir()
                    if components_meet(part, child.name) and not child.name.startswith(".")
                ]
            found = grown
        return [path for path in found if self.exists(path)]
