"""From what a user names to files: paths, folders of any depth, data sets on the Hub."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.traces.databases import is_session_folder

HUB = "hf://datasets/"
SUFFIXES = (
    "*.jsonl",
    "*.json",
    "*.traj",
    "*.db",
    "*.sqlite",
    "*.parquet",
    "*.jsonl.gz",
    "*.json.gz",
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file (or a folder that is one log) to read; `named` when the user named it itself."""

    path: Path
    named: bool


def find_files(names: Iterable[str]) -> Iterator[Found]:
    """The files below every name, in a fixed order. A missing file is left to its reader."""
    for name in names:
        path = download(name) if name.startswith(HUB) else Path(name)
        if not path.is_dir():
            yield Found(path, named=True)
            continue
        yield from _below(path)


def check_names(names: Iterable[str]) -> None:
    """Raises TraceError for a path that isn't there: a slip, not an unreadable session."""
    for name in names:
        if not name.startswith(HUB) and not Path(name).exists():
            raise TraceError(f"{name}: no such file; check the path")


def _below(folder: Path) -> Iterator[Found]:
    if is_session_folder(folder):
        yield Found(folder, named=True)
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise TraceError(f"{folder}: {error.strerror}; check its rights") from error
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _below(entry)
        elif entry.is_file():
            yield Found(entry, named=False)


def download(name: str) -> Path:
    """The local copy of a data set on the Hub, `hf://datasets/OWNER/NAME[@REVISION]`."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    repository, _, revision = name.removeprefix(HUB).strip("/").partition("@")
    try:
        folder = snapshot_download(
            repository,
            repo_type="dataset",
            revision=revision or None,
            allow_patterns=list(SUFFIXES),
        )
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TraceError(f"{name}: not to be had from the Hub ({reason})") from error
    return Path(folder)
