"""Sandboxes: namespaces, overlays, cgroups, freezing a workspace.

A `Sandbox` is one isolated file system and process tree on bubblewrap. What a session leaves is
taken out by `freeze`, which kills every process first and keeps only the working directory;
`verify` scores it in a second, fresh sandbox. This package knows nothing of tasks and models.
"""

from harness_adapters.sandbox.box import BwrapSandbox
from harness_adapters.sandbox.contract import (
    Bind,
    ExecResult,
    Frozen,
    Limits,
    Sandbox,
    Serve,
    Usage,
)
from harness_adapters.sandbox.machine import (
    Isolation,
    Problem,
    check_machine,
    clean_leftovers,
    isolation,
    probe,
)
from harness_adapters.sandbox.reward_file import read_reward
from harness_adapters.sandbox.scratch import State, temporary_state
from harness_adapters.sandbox.verify import Verification, verify

__all__ = [
    "Bind",
    "BwrapSandbox",
    "ExecResult",
    "Frozen",
    "Isolation",
    "Limits",
    "Problem",
    "Sandbox",
    "Serve",
    "State",
    "Usage",
    "Verification",
    "check_machine",
    "clean_leftovers",
    "isolation",
    "probe",
    "read_reward",
    "temporary_state",
    "verify",
]
