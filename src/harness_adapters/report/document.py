"""What every page of the report is made of: assets, and a policy that allows its scripts alone."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path


def asset(name: str) -> str:
    """A file of `assets/`."""
    return files("harness_adapters.report").joinpath("assets", name).read_text("utf-8")


def policy(*scripts: str, live: bool = False) -> str:
    """The content security policy: these scripts by their hashes, no request but to `watch`."""
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
    connect = "connect-src 'self'; " if live else ""
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}; {connect}"
        "base-uri 'none'; form-action 'none'"
    )


def replace_file(path: Path, text: str) -> None:
    """Write whole or not at all: a page that is open in a browser never shows half."""
    partial = path.with_suffix(".partial")
    partial.write_text(text, "utf-8")
    partial.replace(path)
