"""Every error that reaches a user, as one tree.

    HarnessAdaptersError
    |-- ConfigError         a setting, a flag or a TOML file is wrong
    |-- TaskError           a task directory or dataset is not what the Harbor format asks for
    |-- SandboxError        the machine can't isolate a session, or a sandbox broke
    |   `-- WorkspaceError  what an agent left in its workspace is beyond the limits
    |-- HarnessError        an agent CLI is missing, has the wrong version or didn't start
    |-- EngineError         the inference server is missing, dead or disagrees with the trainer
    |   `-- ContextError    a prompt leaves no room for an answer
    |-- ModelError          a model can't be found, converted or loaded
    |-- LearnerError        the trainer process failed or its checkpoint can't be read
    |-- TraceError          a recorded session can't be read or made into a task
    |-- StoreError          a run directory is missing, locked, damaged or full
    `-- Interrupted         the user ended it; finished work is kept

A message says what was wrong, where, and what to do, in one line. The command line prints it
without a traceback and exits with `exit_code`.
"""

from __future__ import annotations


class HarnessAdaptersError(Exception):
    """Base of all errors that a user may see; `str(error)` is the one line to print."""

    exit_code = 2


class ConfigError(HarnessAdaptersError):
    """A setting, a flag or a TOML file is wrong."""


class TaskError(HarnessAdaptersError):
    """A task directory or dataset is not what the Harbor format asks for."""


class SandboxError(HarnessAdaptersError):
    """The machine can't isolate a session, or a sandbox broke."""

    exit_code = 3


class WorkspaceError(SandboxError):
    """What an agent left in its workspace is beyond the limits: its own doing, not a failure."""


class HarnessError(HarnessAdaptersError):
    """An agent CLI is missing, has the wrong version or didn't start."""

    exit_code = 3


class EngineError(HarnessAdaptersError):
    """The inference server is missing, dead or disagrees with the trainer."""

    exit_code = 3


class ContextError(EngineError):
    """A prompt leaves no room for an answer in the model's context."""


class ModelError(HarnessAdaptersError):
    """A model can't be found, converted or loaded."""


class LearnerError(HarnessAdaptersError):
    """The trainer process failed or its checkpoint can't be read."""

    exit_code = 3


class TraceError(HarnessAdaptersError):
    """A recorded session can't be read or made into a task."""


class StoreError(HarnessAdaptersError):
    """A run directory is missing, locked, damaged or full."""


class Interrupted(HarnessAdaptersError):  # noqa: N818 - not an error of anything
    """The user ended it; finished work is kept."""

    exit_code = 130
