"""Known harnesses by name."""

from __future__ import annotations

from collections.abc import Callable

from harness_adapters.errors import HarnessError
from harness_adapters.harness import Harness
from harness_adapters.harness.hermes import Hermes
from harness_adapters.harness.opencode import OpenCode
from harness_adapters.harness.pi import Pi

_KNOWN: dict[str, Callable[[], Harness]] = {"hermes": Hermes, "opencode": OpenCode, "pi": Pi}


def known_harnesses() -> list[str]:
    """Names that `get_harness` takes."""
    return sorted(_KNOWN)


def get_harness(name: str) -> Harness:
    """The driver of one harness. Raises HarnessError listing the known names."""
    try:
        return _KNOWN[name]()
    except KeyError:
        raise HarnessError(f"no harness {name!r}; known: {', '.join(known_harnesses())}") from None
