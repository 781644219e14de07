"""What agents, version control and tools keep for themselves beside a project's own files."""

from __future__ import annotations

from pathlib import PurePosixPath

_NAMES = {
    ".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".cache",
    "node_modules", ".venv", "venv", ".tox", ".claude", ".codex", ".opencode", ".pi", ".hermes",
    ".aider.chat.history.md", ".coverage", ".env",
}  # fmt: skip
_SUFFIXES = {".pyc", ".pyo", ".orig", ".rej", ".patch", ".diff", ".swp"}


def is_housekeeping(path: str) -> bool:
    """Whether a path lies in version control, a cache, an agent's folder, or is left from one."""
    pure = PurePosixPath(path)
    return pure.suffix in _SUFFIXES or any(
        part in _NAMES or part.endswith(".egg-info") for part in pure.parts
    )
