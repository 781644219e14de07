"""Evaluation: paired plans, statistics, cost. No gradients here.

`plan.PairedPlan` says what to run, `compare.compare` what came out of it, `compare.headline` the
sentence to quote, `paired_difference` the figure in it. Modules are loaded when they are used:
`compare` needs SciPy, `plan` doesn't.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness_adapters.evaluation.statistics import paired_difference

__all__ = ["paired_difference"]

if not TYPE_CHECKING:  # type checkers read the import above, and would take any name from this

    def __getattr__(name: str) -> Any:
        """The public name, loaded once."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.statistics"), name)
        globals()[name] = value
        return value
