"""Uploading a published adapter to a Hub."""

from __future__ import annotations

from pathlib import Path

from harness_adapters.adapters.source import CARD, CONFIG, TRAINED_ON, WEIGHTS
from harness_adapters.errors import ModelError

_NEEDED = (CARD, CONFIG, TRAINED_ON, WEIGHTS, "README.md")


def files_of(directory: Path) -> list[Path]:
    """What would be uploaded. Raises ModelError where `directory` is no published adapter."""
    for name in _NEEDED:
        if not (directory / name).is_file():
            raise ModelError(
                f"{directory}: no {name}; `harness-adapters card RUN` writes what can be pushed"
            )
    return sorted(p for p in directory.rglob("*") if p.is_file() and not p.name.startswith("."))


def push(directory: Path, repository: str, *, private: bool) -> str:
    """Create the repository where it is missing, upload in one commit; its address.

    The Hub and the token are those of `huggingface_hub` (`HF_ENDPOINT`, `HF_TOKEN`). Raises
    ModelError with the Hub's answer.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    files_of(directory)
    api = HfApi()
    try:
        address = api.create_repo(repository, private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            folder_path=directory,
            commit_message="Adapter with its card",
            ignore_patterns=["**/.*", ".*"],
        )
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise ModelError(
            f"{repository}: not uploaded: {_said(error)}; check HF_TOKEN and the name"
        ) from None
    return str(address)


def download(repository: str) -> Path:
    """A published adapter from the Hub, in its cache. Raises ModelError."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(snapshot_download(repository))
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        raise ModelError(
            f"{repository}: neither a directory nor a repository that can be had: {_said(error)}"
        ) from None


def _said(error: Exception) -> str:
    """An error of the client in one line: what the Hub itself said, where it said something."""
    said = getattr(error, "server_message", None)
    first = (str(error).splitlines() or [type(error).__name__])[0]
    # A plain ValueError names what is wrong with the card below its first line.
    return f"{first} ({said})" if said else " ".join(str(error).split()) or first
