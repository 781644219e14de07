"""A fair share of session slots between trainers that sample at once."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class FairShare:
    """So many sessions at a time, over all who take part.

    A slot that becomes free goes to whoever waits and holds the fewest; among equals, to the one
    served longest ago. Who is alone has all slots.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, name: str) -> Share:
        """The slots as `name` sees them: an asynchronous context manager, to be entered often."""
        self._held.setdefault(name, 0)
        self._waiting.setdefault(name, deque())
        return Share(self, name)

    async def take(self, name: str) -> None:
        """Wait for a slot."""
        if self._free > 0:
            self._give(name)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[name].append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave(name)  # it was given at the very moment of the cancellation
            raise

    def leave(self, name: str) -> None:
        """Give a slot back."""
        self._held[name] -= 1
        self._free += 1
        waiting = [who for who, turns in self._waiting.items() if self._next(turns)]
        if waiting:
            chosen = min(waiting, key=self._held.__getitem__)
            self._give(chosen)
            self._waiting[chosen].popleft().set_result(None)

    def _give(self, name: str) -> None:
        self._free -= 1
        # Taken out and put back: the order of the names is the order in which they were served.
        self._held[name] = self._held.pop(name) + 1
        self._waiting[name] = self._waiting.pop(name)

    @staticmethod
    def _next(turns: deque[asyncio.Future[None]]) -> bool:
        while turns and turns[0].done():
            turns.popleft()
        return bool(turns)


class Share:
    """One participant's slots; `async with share:` holds one."""

    def __init__(self, shared: FairShare, name: str) -> None:
        """Use `FairShare.of`."""
        self._shared, self._name = shared, name

    async def __aenter__(self) -> None:
        """Wait for a slot."""
        await self._shared.take(self._name)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self._shared.leave(self._name)
