"""Variables of a function, and those around it."""

from __future__ import annotations

from harness_adapters.guard.effects.python.values import (
    Value,
)


class Scope(dict[str, Value]):
    """Variables of a function: its own, then those around it."""

    def __init__(self, own: dict[str, Value], around: dict[str, Value]) -> None:
        super().__init__(own)
        self.around = around
        self.own = own

    def __missing__(self, name: str) -> Value:
        return self.around[name]

    def __setitem__(self, name: str, value: Value) -> None:
        super().__setitem__(name, value)
        if self.own is not self.around:
            self.own[name] = value
