"""Engine: starting or attaching to an inference server, adapters, model profiles.

An engine takes token ids and gives token ids with log-probabilities; chat templates and tool-call
formats belong to the model's profile (`models.py`), so every engine renders the same way. It
knows nothing of sessions and rewards.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness_adapters.records import Message, ToolSchema

BASE = "base"
"""Adapter name that stands for the model without an adapter."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample: plain softmax at `temperature`, no top-p, no top-k, no penalties."""

    temperature: float
    max_tokens: int
    seed: int | None = None
    """Honoured where the engine can: vLLM for the CPU can't, and samples freely."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the engine sampled. `logprobs` are of the distribution that was sampled from."""

    output_ids: list[int]
    logprobs: list[float]
    finish: str
    """`stop` (an end token, included in the ids, was sampled) or `length`."""
    cached_tokens: int
    seconds: float


class Engine(Protocol):
    """An inference server for one model and many adapters."""

    @property
    def kind(self) -> str:
        """`vllm`, `transformers` or `scripted`, for reports."""
        ...

    @property
    def max_context(self) -> int:
        """Prompt + output tokens."""
        ...

    async def generate(
        self, prompt_ids: list[int], *, adapter: str = BASE, sampling: Sampling, session: str = ""
    ) -> Completion:
        """Sample one answer. Raises EngineError (dead, unknown adapter) or ContextError.

        `session` identifies the caller; only a scripted engine looks at it.
        """
        ...

    async def load_adapter(self, name: str, path: Path) -> None:
        """Make a PEFT directory servable under a new name; never pauses running requests."""
        ...

    async def unload_adapter(self, name: str) -> None:
        """Take no new requests for an adapter; forget it when those in flight have ended.

        Its directory may be deleted after that.
        """
        ...

    async def close(self) -> None:
        """Stop what this object started."""
        ...


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A model's answer, read: text for people, and calls in order."""

    content: str
    calls: list[ParsedCall]


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """One tool call. `arguments` is JSON text; `malformed` when it isn't a JSON object."""

    name: str
    arguments: str
    malformed: bool = False


class ChatFormat(Protocol):
    """Between chat messages and token ids, for one model. See `models.load_chat_format`."""

    @property
    def end_ids(self) -> list[int]:
        """Token ids that end a turn."""
        ...

    def render(self, messages: list[Message], tools: list[ToolSchema]) -> list[int]:
        """Prompt ids up to and including the opening of the assistant's turn."""
        ...

    def parse(self, text: str) -> ParsedReply:
        """Read decoded output (special tokens kept). Tolerant; never raises on model output."""
        ...

    def write_call(self, name: str, arguments: str) -> str:
        """A tool call in the model's own form, as `render` writes it in histories."""
        ...

    def encode(self, text: str) -> list[int]:
        """Token ids of plain text, no special tokens added."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Text of ids, special tokens kept."""
        ...
