"""The starter suite that no run owns: written once, and anew when its code has changed."""

from pathlib import Path

import pytest

from harness_adapters.config import load
from harness_adapters.tasks import starter
from harness_adapters.training.run import shared_dataset


def test_a_suite_of_other_code_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path))
    sizes = ["train", "validation", "test"]
    settings = load(None, ['tasks.families=["sort_lines"]', *(f"tasks.{one}=3" for one in sizes)])
    first = shared_dataset(settings)
    assert shared_dataset(settings).root == first.root
    monkeypatch.setattr(starter, "fingerprint", lambda: "changed")
    again = shared_dataset(settings)
    assert again.root != first.root
    assert [task.id for task in again.tasks] == [task.id for task in first.tasks]
