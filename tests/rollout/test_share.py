"""Slots between trainers: fair, never idle, never lost."""

import asyncio
from collections import Counter

from harness_adapters.rollout.share import FairShare, Share


async def work(share: Share, running: Counter[str], name: str, seconds: float) -> None:
    async with share:
        running[name] += 1
        await asyncio.sleep(seconds)
        running[name] -= 1


async def test_all_get_the_same_however_many_wait() -> None:
    shared, running = FairShare(6), Counter[str]()
    jobs = [work(shared.of("many"), running, "many", 0.05) for _ in range(60)]
    jobs += [work(shared.of("few"), running, "few", 0.05) for _ in range(12)]
    jobs += [work(shared.of("slow"), running, "slow", 0.2) for _ in range(6)]
    everything = asyncio.gather(*jobs)
    await asyncio.sleep(0.12)  # the first to come had all slots; by now they are shared
    assert running == {"many": 2, "few": 2, "slow": 2}
    await everything


async def test_no_slot_is_idle_while_anybody_waits() -> None:
    shared, running = FairShare(4), Counter[str]()
    everything = asyncio.gather(*(work(shared.of("a"), running, "a", 0.05) for _ in range(12)))
    await asyncio.sleep(0.02)
    assert running["a"] == 4
    everything.cancel()


async def test_cancelled_waiters_lose_no_slot() -> None:
    shared, running = FairShare(1), Counter[str]()
    first = asyncio.create_task(work(shared.of("a"), running, "a", 0.05))
    await asyncio.sleep(0.01)
    waiting = [asyncio.create_task(work(shared.of("b"), running, "b", 0.0)) for _ in range(3)]
    await asyncio.sleep(0.01)
    waiting[0].cancel()
    await first
    waiting[1].cancel()  # the slot was given to it, but it has not run since
    await asyncio.wait_for(waiting[2], timeout=1)
    await asyncio.wait_for(work(shared.of("a"), running, "a", 0.0), timeout=1)
