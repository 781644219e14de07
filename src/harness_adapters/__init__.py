"""Train one small LoRA adapter per model and agent harness, inside the real, unmodified agent.

`__all__` is the library's face (docs/api.md). Each name loads its module when it is first used
(PEP 562), so that importing the package is instant.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_adapters.config import Settings
    from harness_adapters.config import load as load_settings
    from harness_adapters.errors import HarnessAdaptersError
    from harness_adapters.evaluation.compare import compare
    from harness_adapters.evaluation.headline import headline
    from harness_adapters.evaluation.results import Comparison
    from harness_adapters.harness.install import install as install_harness
    from harness_adapters.progress import ConsoleReporter, Quiet, Reporter
    from harness_adapters.records import Phase, Rollout, Turn
    from harness_adapters.report.page import write_report
    from harness_adapters.store import Store
    from harness_adapters.tasks.dataset import Dataset, load_dataset
    from harness_adapters.tasks.task import Task, load_task
    from harness_adapters.training.pipeline import evaluate_run, train_and_evaluate, train_run
    from harness_adapters.training.run import Run, open_run, reopen_run

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "ConsoleReporter",
    "Dataset",
    "HarnessAdaptersError",
    "Phase",
    "Quiet",
    "Reporter",
    "Rollout",
    "Run",
    "Settings",
    "Store",
    "Task",
    "Turn",
    "__version__",
    "compare",
    "evaluate_run",
    "headline",
    "install_harness",
    "load_dataset",
    "load_settings",
    "load_task",
    "open_run",
    "reopen_run",
    "train_and_evaluate",
    "train_run",
    "write_report",
]

_HOMES = {
    "config": ("Settings",),
    "errors": ("HarnessAdaptersError",),
    "evaluation.compare": ("compare",),
    "evaluation.headline": ("headline",),
    "evaluation.results": ("Comparison",),
    "progress": ("ConsoleReporter", "Quiet", "Reporter"),
    "records": ("Phase", "Rollout", "Turn"),
    "report.page": ("write_report",),
    "store": ("Store",),
    "tasks.dataset": ("Dataset", "load_dataset"),
    "tasks.task": ("Task", "load_task"),
    "training.pipeline": ("evaluate_run", "train_and_evaluate", "train_run"),
    "training.run": ("Run", "open_run", "reopen_run"),
}
"""Module below this package -> what it gives under its own name."""

_SOURCES = {name: (module, name) for module, names in _HOMES.items() for name in names} | {
    "install_harness": ("harness.install", "install"),
    "load_settings": ("config", "load"),
}

if not TYPE_CHECKING:  # type checkers read the imports above, and would take any name from this

    def __getattr__(name: str) -> Any:
        """A public name, loaded once."""
        if name not in _SOURCES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _SOURCES[name]
        value = getattr(import_module(f"{__name__}.{module}"), attribute)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
