"""Running a verb's work: an interrupt ends it in order and in one line."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from harness_adapters.errors import Interrupted

Result = TypeVar("Result")


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """`asyncio.run`; Ctrl-C cancels the work, waits for its clean-up, and raises Interrupted."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise Interrupted(
            "interrupted; nothing that was finished is lost: the same command goes on "
            "(train: with --resume)"
        ) from None
