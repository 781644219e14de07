"""TransformersEngine: the fallback where vLLM can't be installed. Same protocol, one process.

One worker thread owns the model. It decodes the waiting requests of one adapter together, lets
others of that adapter join between steps, and changes the adapter when the batch has run dry or
someone else has been waiting.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness_adapters.engine import BASE, Completion, Sampling
from harness_adapters.engine.local_model import LocalModel
from harness_adapters.engine.uses import Uses
from harness_adapters.errors import ContextError, EngineError

if TYPE_CHECKING:
    from harness_adapters.engine.decoding import Batch, Row

MAX_ROWS = 32
"""Requests decoded together; more wait."""


@dataclass(eq=False)
class _Request:
    adapter: str
    prompt_ids: list[int]
    sampling: Sampling
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Completion]
    started: float = field(default_factory=time.perf_counter)
    cancelled: bool = False

    def finish(self, result: Completion | BaseException) -> None:
        def deliver() -> None:
            if self.answer.done():
                return
            if isinstance(result, BaseException):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        self.loop.call_soon_threadsafe(deliver)


class TransformersEngine:
    """An Engine in this process. Make it with `start`."""

    def __init__(
        self, local: LocalModel, *, max_context: int, end_ids: Sequence[int], cache_gib: float
    ) -> None:
        from harness_adapters.engine.decoding import PrefixCache, is_plain

        self._local = local
        self._plain = is_plain(local.model)
        self._prefixes = PrefixCache(int(cache_gib * 2**30))
        self._max_context = max_context
        self._end_ids = set(end_ids)
        self._wake = threading.Condition()
        self._waiting: deque[_Request] = deque()
        self._jobs: deque[Callable[[], None]] = deque()
        self._closed = False
        self._names: set[str] = set()
        self._uses = Uses()
        self._thread = threading.Thread(target=self._work, name="engine", daemon=True)
        self._thread.start()

    @classmethod
    async def start(
        cls,
        model_dir: Path,
        *,
        dtype: str,
        max_context: int,
        end_ids: Sequence[int],
        threads: int = 1,
        cache_gib: float = 2.0,
        trust_remote_code: bool = False,
    ) -> TransformersEngine:
        """Load the model (on the GPU where there is one). Raises ModelError."""
        import torch

        torch.set_num_threads(threads)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        local = await asyncio.to_thread(
            LocalModel.load,
            model_dir,
            dtype=dtype,
            device=device,
            trust_remote_code=trust_remote_code,
        )
        return cls(local, max_context=max_context, end_ids=end_ids, cache_gib=cache_gib)

    @property
    def kind(self) -> str:
        """`transformers`."""
        return "transformers"

    @property
    def max_context(self) -> int:
        """Prompt + output tokens."""
        return self._max_context

    async def generate(
        self, prompt_ids: list[int], *, adapter: str = BASE, sampling: Sampling, session: str = ""
    ) -> Completion:
        """Sample one answer; cancelling this call frees its place in the batch."""
        if len(prompt_ids) >= self._max_context:
            raise ContextError(
                f"a prompt of {len(prompt_ids)} tokens leaves no room in a context of "
                f"{self._max_context}; raise engine.max_context or shorten the session"
            )
        if adapter != BASE and adapter not in self._names:
            raise EngineError(f"adapter {adapter!r} is not loaded; load_adapter comes first")
        loop = asyncio.get_running_loop()
        request = _Request(adapter, prompt_ids, sampling, loop, loop.create_future())
        with self._wake:
            self._check_open()
            self._waiting.append(request)
            self._wake.notify()
        try:
            with self._uses.one(adapter):
                return await request.answer
        finally:
            request.cancelled = True

    async def load_adapter(self, name: str, path: Path) -> None:
        """Make a PEFT directory servable under a new name, between two steps of the batch."""
        await self._run(lambda: self._local.load_adapter(name, path))
        self._names.add(name)

    async def unload_adapter(self, name: str) -> None:
        """Take no new requests for an adapter, and forget it when those in flight have ended."""

        def unload() -> None:
            self._local.unload_adapter(name)
            self._prefixes.forget(name)

        if name not in self._names:
            raise EngineError(f"adapter {name!r} is not loaded")
        self._names.discard(name)
        await self._uses.ended(name)
        await self._run(unload)

    async def close(self) -> None:
        """Stop the worker thread; requests in it fail."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    def _check_open(self) -> None:
        if self._closed or not self._thread.is_alive():
            raise EngineError("the engine is closed")

    async def _run(self, work: Callable[[], None]) -> None:
        """Run `work` in the thread that owns the model, once no batch is using an adapter."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def job() -> None:
            try:
                work()
            except Exception as error:  # handed to the caller, who awaits it
                loop.call_soon_threadsafe(done.set_exception, error)
            else:
                loop.call_soon_threadsafe(done.set_result, None)

        with self._wake:
            self._check_open()
            self._jobs.append(job)
            self._wake.notify()
        await done

    # The worker thread.

    def _work(self) -> None:
        import torch

        with torch.inference_mode():
            while True:
                with self._wake:
                    while not (self._closed or self._jobs or self._waiting):
                        self._wake.wait()
                    jobs, self._jobs = self._jobs, deque()
                    if self._closed:
                        self._fail_all(self._waiting)
                        return
                for job in jobs:
                    # Loading makes parameters, which inference mode would taint.
                    with torch.inference_mode(False):
                        job()
                if self._waiting:
                    self._drain(self._waiting[0].adapter)

    def _drain(self, adapter: str) -> None:
        """Decode requests of one adapter until none is left or another one's turn has come."""
        from harness_adapters.engine.decoding import Batch

        running: dict[int, tuple[_Request, Row]] = {}
        try:
            with self._local.using(adapter) as model:
                batch = Batch(model, adapter, self._prefixes, plain=self._plain)
                while True:
                    self._admit(batch, adapter, running)
                    self._retire(batch, running)
                    if not batch.rows:
                        return
                    batch.step()
        except Exception as error:
            # A request must not take the engine down: those in this batch fail, the rest go on.
            failed = [request for request, _ in running.values()]
            if not failed and self._waiting:
                failed = [self._waiting.popleft()]
            for request in failed:
                known = isinstance(error, EngineError)
                request.finish(error if known else EngineError(f"decoding failed: {error}"))

    def _admit(self, batch: Batch, adapter: str, running: dict[int, tuple[_Request, Row]]) -> None:
        import torch

        from harness_adapters.engine.decoding import Row

        limit = MAX_ROWS if self._plain else 1
        while len(batch.rows) < limit:
            with self._wake:
                # Others wait for the model: let this batch run dry.
                if self._closed or self._jobs or not self._waiting:
                    return
                if self._waiting[0].adapter != adapter:
                    return
                request = self._waiting.popleft()
            if request.cancelled:
                continue
            sampling = request.sampling
            generator = None
            if sampling.seed is not None:
                device = self._local.model.device
                generator = torch.Generator(device=device).manual_seed(sampling.seed)
            room = self._max_context - len(request.prompt_ids)
            row = Row(
                request.prompt_ids, sampling.temperature, min(sampling.max_tokens, room), generator
            )
            running[id(row)] = (request, row)
            batch.join(row)

    def _retire(self, batch: Batch, running: dict[int, tuple[_Request, Row]]) -> None:
        """Answer the requests that are done, drop the cancelled ones."""
        leaving: list[Any] = []
        for row in batch.rows:
            request, _ = running[id(row)]
            stopped = row.output_ids[-1] in self._end_ids
            ended = stopped or request.cancelled or self._closed
            if not ended and len(row.output_ids) < row.max_tokens:
                continue
            leaving.append(row)
            if self._closed:
                request.finish(EngineError("the engine was closed"))
            elif not request.cancelled:
                request.finish(
                    Completion(
                        output_ids=row.output_ids,
                        logprobs=row.logprobs,
                        finish="stop" if stopped else "length",
                        cached_tokens=row.cached_tokens,
                        seconds=time.perf_counter() - request.started,
                    )
                )
        if leaving:
            batch.leave(leaving)
            for row in leaving:
                del running[id(row)]

    def _fail_all(self, requests: deque[_Request]) -> None:
        for request in requests:
            request.finish(EngineError("the engine was closed"))
        requests.clear()
