"""Tasks: the Harbor format, datasets, splits, and the built-in starter suite.

A task is a directory: `task.toml`, `instruction.md`, `environment/files/` (what the agent finds
in its working directory), `solution/solve.sh`, `tests/test.sh` (writes the reward). This package
knows nothing of harnesses and models.
"""

from harness_adapters.tasks.dataset import Dataset, load_dataset
from harness_adapters.tasks.task import Action, Edit, Shell, Split, Task, WriteFile, load_task

__all__ = [
    "Action",
    "Dataset",
    "Edit",
    "Shell",
    "Split",
    "Task",
    "WriteFile",
    "load_dataset",
    "load_task",
]
