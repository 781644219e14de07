"""Known harnesses by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness_adapters.errors import HarnessError
from harness_adapters.harness import Harness
from harness_adapters.harness.hermes import Hermes
from harness_adapters.harness.opencode import OpenCode
from harness_adapters.harness.pi import Pi
from harness_adapters.harness.toml_driver import TomlHarness

_KNOWN: dict[str, Callable[[], Harness]] = {"hermes": Hermes, "opencode": OpenCode, "pi": Pi}


def known_harnesses() -> list[str]:
    """Names that `get_harness` takes."""
    return sorted(_KNOWN)


def get_harness(name: str) -> Harness:
    """The driver of one harness, by its name or by a harness file (`….toml`).

    Raises HarnessError listing the known names, or saying what is wrong with the file.
    """
    if name.endswith(".toml"):
        harness = TomlHarness.load(Path(name).expanduser())
        if harness.name in _KNOWN:
            raise HarnessError(f"{name}: {harness.name} is the name of a built-in harness")
        return harness
    try:
        return _KNOWN[name]()
    except KeyError:
        known = ", ".join(known_harnesses())
        raise HarnessError(
            f"no harness {name!r}; known: {known}, or a harness file (….toml)"
        ) from None
