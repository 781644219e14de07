"""The starter suite: procedurally generated tasks, seeded, offline, with deterministic verifiers.

`draft` makes one instance in memory, `write` a whole dataset of Harbor directories. A family is one
function in one of the theme files; to add one, write it and list it in that file's `FAMILIES`.
"""

from harness_adapters.tasks.starter.family import LEVELS, Check, Draft, Family
from harness_adapters.tasks.starter.suite import FAMILIES, draft, family, kinds
from harness_adapters.tasks.starter.writing import fingerprint, write, write_task

__all__ = [
    "FAMILIES",
    "LEVELS",
    "Check",
    "Draft",
    "Family",
    "draft",
    "family",
    "fingerprint",
    "kinds",
    "write",
    "write_task",
]
