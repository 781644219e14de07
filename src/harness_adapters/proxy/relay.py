"""One exchange: the request goes on to the upstream, its answer comes back as far as it may."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from harness_adapters.errors import StoreError
from harness_adapters.guard.judging import one_line
from harness_adapters.proxy.answer import Answer, Refusal
from harness_adapters.proxy.chat import filter_chat
from harness_adapters.proxy.chat_stream import ChatFilter
from harness_adapters.proxy.connection import Incoming, Outgoing, UpstreamError, UpstreamTimeout
from harness_adapters.proxy.events import Event, Splitter
from harness_adapters.proxy.judging import INCOMPLETE, OVERSIZE, UNREADABLE, Bench, Call
from harness_adapters.proxy.messages import MessagesFilter, filter_messages
from harness_adapters.proxy.other import PlainFilter, look_through
from harness_adapters.proxy.routes import Route, to_client
from harness_adapters.proxy.shapes import NotJson, Oversize, Unreadable
from harness_adapters.proxy.upstream import Upstream

EVENT_STREAM = "text/event-stream"


class Filter(Protocol):
    """Holds and judges the calls of one stream."""

    @property
    def holding(self) -> bool:
        """Whether something waits for a verdict."""
        ...

    async def feed(self, event: Event) -> bytes:
        """What may go out after this event. Raises Unreadable, Oversize, StoreError."""
        ...

    def end(self) -> bytes:
        """What may go out at the end. Raises Unreadable when a call was not whole."""
        ...

    def abandon(self, rule: str, reason: str) -> int:
        """Put on record the calls that will never be judged; gives their number."""
        ...

    def close(self) -> bytes:
        """An end of the answer in order, with notices, after `abandon`."""
        ...

    def error(self, message: str, status: int) -> bytes:
        """An error within the stream."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of one answer."""

    max_call: int = 1 << 20
    """Characters of one call's arguments."""
    max_held: int = 64 << 20
    """Bytes that may wait for a verdict; an answer that isn't streamed waits as a whole."""


@dataclass(slots=True)
class Exchange:
    """One request and its answer."""

    route: Route
    bench: Bench
    limits: Limits
    answer: Answer
    through: Filter | None = None
    """Set while an answer streams."""

    async def run(self, upstream: Upstream, request: Outgoing) -> None:
        """Forward and answer. Every fault ends in an error or in a notice, never in a call."""
        try:
            async with upstream.sent(request) as response:
                await self._receive(response)
        except Oversize as fault:
            await self._cut(OVERSIZE, str(fault))
        except Unreadable as fault:
            await self._fault(UNREADABLE, f"the upstream's answer can't be judged: {fault}", 502)
        except UpstreamTimeout as fault:
            await self._fault(INCOMPLETE, f"the upstream took too long: {fault}", 504)
        except UpstreamError as fault:
            await self._fault(INCOMPLETE, f"the upstream failed: {fault}", 502)
        except Refusal as refusal:
            await self.answer.refuse(refusal)
        except StoreError as fault:
            await self._fail(str(fault), 500)
        except Exception as fault:  # fail closed: whatever broke, nothing more may pass
            await self._fault(INCOMPLETE, one_line(fault), 500)

    def client_left(self) -> None:
        """Put on record what was never whole."""
        if self.through is not None:
            with suppress(StoreError):
                self.through.abandon(INCOMPLETE, "the agent went away")

    async def _receive(self, response: Incoming) -> None:
        if response.redirects:
            raise Refusal(502, "the upstream redirects; the agent would follow past the guard")
        if response.header(b"content-encoding") not in ("", "identity"):
            raise Refusal(502, "the upstream compresses though it was asked not to")
        headers = to_client(response.headers)
        if response.header(b"content-type").lower().startswith(EVENT_STREAM):
            self.through = self._filter()
            self.answer.begin(response.status, headers)
            await self._stream(response, self.through)
        else:
            body = await self._whole(response)
            await self.answer.whole(response.status, headers, body)

    def _filter(self) -> Filter:
        sizes = {"max_call": self.limits.max_call, "max_held": self.limits.max_held}
        match self.route:
            case Route.CHAT:
                return ChatFilter(self.bench, **sizes)
            case Route.MESSAGES:
                return MessagesFilter(self.bench, **sizes)
            case _:
                return PlainFilter()

    async def _stream(self, response: Incoming, through: Filter) -> None:
        splitter = Splitter(self.limits.max_held)
        async for data in response.portions:
            for event in splitter.feed(data):
                if out := await through.feed(event):
                    await self.answer.write(out)
        left = splitter.rest()
        out = (await through.feed(left) if left else b"") + through.end()
        if out:
            await self.answer.write(out)
        await self.answer.end()

    async def _whole(self, response: Incoming) -> bytes:
        body = bytearray()
        async for data in response.portions:
            body += data
            if len(body) > self.limits.max_held:
                raise Oversize(f"an answer of more than {self.limits.max_held} bytes")
        whole = bytes(body)
        try:
            if self.route is Route.CHAT:
                return await filter_chat(whole, self.bench, max_call=self.limits.max_call)
            if self.route is Route.MESSAGES:
                return await filter_messages(whole, self.bench, max_call=self.limits.max_call)
        except NotJson:
            if response.ok and whole:
                raise
            # The page of some server in between: an error that no agent takes for an answer.
        return look_through(whole)

    async def _cut(self, rule: str, reason: str) -> None:
        """End a stream in which a call grew too large with a notice in the call's place."""
        try:
            if self.through is not None and self.through.abandon(rule, reason):
                await self.answer.write(self.through.close())
                await self.answer.end()
                return
        except StoreError as error:
            reason = str(error)
        else:
            reason = self._recorded(rule, f"the upstream's answer can't be judged: {reason}")
        await self._fail(reason, 502)

    async def _fault(self, rule: str, reason: str, status: int) -> None:
        """End with an error; calls that were on their way go on record as blocked."""
        reason = self._recorded(rule, reason)
        await self._fail(reason, status)

    def _recorded(self, rule: str, reason: str) -> str:
        """Write down what is lost, the open calls or the whole answer; gives `reason`."""
        try:
            known = self.through.abandon(rule, reason) if self.through is not None else 0
            if not known and rule != INCOMPLETE:
                self.bench.refuse(Call("", "", ""), rule, reason)
        except StoreError as error:
            return f"{reason}; {error}"
        return reason

    async def _fail(self, reason: str, status: int) -> None:
        if not self.answer.started:
            await self.answer.refuse(Refusal(status, reason))
            return
        if self.through is not None:
            await self.answer.write(self.through.error(f"audit proxy: {reason}", status))
        await self.answer.end()
