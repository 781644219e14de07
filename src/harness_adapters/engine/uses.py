"""Requests in flight by adapter: one leaves an engine when its last request has ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Uses:
    """Reference counts by adapter name. For one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    @contextmanager
    def one(self, name: str) -> Iterator[None]:
        """Counts as one use of `name`."""
        self._counts[name] += 1
        try:
            yield
        finally:
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]
                for waiter in self._waiting.pop(name, []):
                    if not waiter.done():
                        waiter.set_result(None)

    async def ended(self, name: str) -> None:
        """Returns when `name` has no use; the caller sees to it that no new one begins."""
        if name in self._counts:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(name, []).append(waiter)
            await waiter
