"""Threads for policies: kept for the next call, left to themselves when one hangs.

The standard library's pool waits for its threads when the process ends, and a policy that hangs
would take its thread from all others.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

_idle: list[_Worker] = []
"""Last in, first out: few threads do most of the work. Appending and popping are atomic."""


async def run_in_worker(work: Callable[[], Result]) -> Result:
    """What `work` gives or raises, from another thread. Cancelling ends the waiting alone."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, error: BaseException | None) -> None:
        if answer.done():
            return
        if error is not None:
            answer.set_exception(error)
        else:
            answer.set_result(result)  # type: ignore[arg-type] # there is one without an error

    def run() -> None:
        try:
            told: tuple[Result | None, BaseException | None] = work(), None
        except BaseException as error:  # handed to whoever waits
            told = None, error
        with contextlib.suppress(RuntimeError):  # the loop may have ended before the policy has
            loop.call_soon_threadsafe(tell, *told)

    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
    worker.jobs.put(run)
    return await answer


class _Worker:
    """One thread, which is idle again after each job."""

    def __init__(self) -> None:
        self.jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._loop, name="policy", daemon=True).start()

    def _loop(self) -> None:
        while True:
            self.jobs.get()()
            _idle.append(self)
