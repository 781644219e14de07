"""An engine that plays prepared replies: oracle demonstrations, and tests of everything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from harness_adapters.engine import BASE, ChatFormat, Completion, Sampling
from harness_adapters.errors import ContextError, EngineError

if TYPE_CHECKING:
    from harness_adapters.harness import Harness
    from harness_adapters.tasks import Action

FINAL_TEXT = "Done."

Reply: TypeAlias = str | Exception
"""Text that the model says, or what `generate` raises instead."""


class ScriptedEngine:
    """Plays, for each session, its replies in order; all log-probabilities are 0.

    A reply is encoded without special tokens and ended by the chat format's first end token, as a
    model that samples it exactly would. It knows no adapters: any name is served.
    """

    kind = "scripted"

    def __init__(self, chat: ChatFormat, *, max_context: int = 32_768, delay: float = 0.0) -> None:
        self.max_context = max_context
        self._chat = chat
        self._delay = delay
        self._scripts: dict[str, Iterator[Reply]] = {}

    def script(self, session: str, replies: Iterable[Reply]) -> None:
        """Set what a session's turns will say; `itertools.repeat(text)` never ends."""
        self._scripts[session] = iter(replies)

    async def generate(
        self, prompt_ids: list[int], *, adapter: str = BASE, sampling: Sampling, session: str = ""
    ) -> Completion:
        """The session's next reply, cut at `sampling.max_tokens`. EngineError past the last."""
        if len(prompt_ids) + 1 > self.max_context:
            raise ContextError(f"{len(prompt_ids)} prompt tokens, context {self.max_context}")
        if self._delay:
            await asyncio.sleep(self._delay)
        reply = next(self._scripts.get(session, iter(())), None)
        if reply is None:
            raise EngineError(f"session {session!r} has no scripted reply left")
        if isinstance(reply, Exception):
            raise reply
        ids = [*self._chat.encode(reply), *self._chat.end_ids[:1]]
        finish = "stop" if len(ids) <= sampling.max_tokens else "length"
        ids = ids[: sampling.max_tokens]
        return Completion(ids, [0.0] * len(ids), finish, cached_tokens=0, seconds=self._delay)

    async def load_adapter(self, name: str, path: Path) -> None:
        """Nothing to load."""

    async def unload_adapter(self, name: str) -> None:
        """Nothing to unload."""

    async def close(self) -> None:
        """Nothing to stop."""


def oracle_replies(chat: ChatFormat, harness: Harness, actions: Sequence[Action]) -> list[str]:
    """What a perfect model would say: one call per action in the harness's own tools, the end."""
    calls = [harness.native_call(action) for action in actions]
    finish = harness.finishing_call()
    texts = [
        chat.write_call(name, json.dumps(args, ensure_ascii=False))
        for name, args in [*calls, *([finish] if finish else [])]
    ]
    return texts if finish else [*texts, FINAL_TEXT]
