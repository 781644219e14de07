"""Uploading a dataset of tasks to a Hub."""

from __future__ import annotations

from pathlib import Path

from harness_adapters.errors import StoreError
from harness_adapters.synthesis.assemble import task_digest
from harness_adapters.synthesis.manifest import PARQUET, read_manifest
from harness_adapters.tasks import load_dataset


def files_of(dataset: Path) -> list[Path]:
    """What would be uploaded: everything but hidden files and folders, the journal among them.

    Raises StoreError where the tasks aren't those of the manifest, or one has no licence.
    """
    rows = {str(row["task"]): row for row in read_manifest(dataset)}
    if not rows:
        raise StoreError(f"{dataset}: no task in it; there is nothing to push")
    for name in (PARQUET, "README.md"):
        if not (dataset / name).is_file():
            raise StoreError(f"{dataset}: no {name}; run `synth --resume` to write it")
    tasks = {task.id: task for task in load_dataset(dataset).tasks}
    if odd := sorted(rows.keys() ^ tasks.keys()):
        raise StoreError(f"{dataset}: {odd[0]} is not both a task and in the manifest")
    for name, row in sorted(rows.items()):
        if not row.get("licence"):
            raise StoreError(f"{dataset}: {name} has no licence; remove it, and its row")
        if task_digest(dataset / str(row["path"])) != row["sha256"]:
            raise StoreError(f"{dataset}: {name} was changed since it was proved")
    return sorted(
        path
        for path in dataset.rglob("*")
        if path.is_file() and not path.relative_to(dataset).parts[0].startswith(".")
    )


def push(dataset: Path, repository: str, *, private: bool) -> str:
    """Create the data set where it is missing, upload in one commit; its address.

    The Hub and the token are those of `huggingface_hub` (`HF_ENDPOINT`, `HF_TOKEN`). Raises
    StoreError with the Hub's answer.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    files_of(dataset)
    api = HfApi()
    try:
        address = api.create_repo(repository, repo_type="dataset", private=private, exist_ok=True)
        api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=dataset,
            commit_message="Tasks with their manifest and card",
            ignore_patterns=[".*", ".*/**"],
        )
    except (HfHubHTTPError, HFValidationError, OSError, ValueError) as error:
        text = str(error).splitlines()[0]
        raise StoreError(
            f"{repository}: not uploaded: {text}; check HF_TOKEN and the name"
        ) from None
    return str(address)
