"""Where things lie on the user's machine (XDG base directories, overridable by environment)."""

from __future__ import annotations

import os
from pathlib import Path


def data_dir() -> Path:
    """Installed harnesses and converted models: `$HARNESS_ADAPTERS_HOME`, else the XDG data dir."""
    if home := os.environ.get("HARNESS_ADAPTERS_HOME"):
        return Path(home).expanduser().absolute()
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser().absolute() / "harness-adapters"


def harness_dir(name: str, version: str) -> Path:
    """Install directory of one harness version."""
    return data_dir() / "harnesses" / f"{name}-{version}"


def models_dir() -> Path:
    """Converted embedded models and warm-started bases."""
    return data_dir() / "models"


def audit_dir() -> Path:
    """Key and heads of the audit logs (`guard/chain.py`): in no sandbox, for its user's eyes only.

    `$HARNESS_ADAPTERS_AUDIT`, else a folder of `data_dir()`.
    """
    if home := os.environ.get("HARNESS_ADAPTERS_AUDIT"):
        return Path(home).expanduser().absolute()
    return data_dir() / "audit"


def guard_dir() -> Path:
    """Which audit proxies run, and the log of those that were given none of their own."""
    return data_dir() / "guard"


def scratch_dir() -> Path:
    """Short-lived session state: memory-backed where the machine has it."""
    shm = Path("/dev/shm")
    root = shm if os.access(shm, os.W_OK) else Path(os.environ.get("TMPDIR", "/tmp"))
    return root / f"harness-adapters-{os.getuid()}"
