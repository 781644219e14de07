"""What flows through the system: tool calls, turns, rollouts.

A session is one run of a real agent on one task. Each language-model call in it is a *turn*, with
the engine's own token ids and log-probabilities. A scored session is a *rollout*; rollouts of one
task under one policy version form a *group*.

Token ids are plain `list[int]`, log-probabilities plain `list[float]` in nats.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
"""One chat message in OpenAI Chat Completions form, `content` a string or null."""

ToolSchema: TypeAlias = dict[str, Any]
"""One entry of the `tools` list of OpenAI Chat Completions."""


class Decision(StrEnum):
    """What the guard says of a tool call."""

    ALLOW = "allow"
    BLOCK = "block"
    """The harness never sees the call; the model gets a notice instead."""
    FLAG = "flag"
    """The call passes and the session is marked for review."""


class Conduct(StrEnum):
    """How a session behaved, in the guard's eyes; the worst of its calls decides."""

    CLEAN = "clean"
    FLAGGED = "flagged"
    """To be looked at: a call was flagged, or several blocked ones had one goal."""
    CHEAT = "cheat"
    """Confirmed: it went for the reward by foul means again and again, or with success."""

    @staticmethod
    def worst(of: Iterable[Conduct]) -> Conduct:
        """The gravest of all; clean for none."""
        return max(of, key=list(Conduct).index, default=Conduct.CLEAN)


class SessionEnd(StrEnum):
    """Why a session ended."""

    FINISHED = "finished"
    """The agent said it was done."""
    BUDGET = "budget"
    """The gateway ended it: turn or token budget spent."""
    CONTEXT = "context"
    """The prompt left no room for an answer."""
    API_ERROR = "api_error"
    """The engine failed; infrastructure, not the model."""
    KILLED = "killed"
    """The wall-clock limit or the operator ended it."""
    INIT_FAILURE = "init_failure"
    """The agent exited before its first model call."""
    NO_CALL = "no_call"
    """The agent ran but never called the model."""

    @property
    def scorable(self) -> bool:
        """False for infrastructure failures: such sessions have reward None, never 0."""
        return self not in (SessionEnd.API_ERROR, SessionEnd.INIT_FAILURE, SessionEnd.NO_CALL)


class Phase(StrEnum):
    """What a rollout was made for."""

    DEMONSTRATION = "demonstration"
    """A scripted oracle played the model; feeds the warm start."""
    DIFFICULTY = "difficulty"
    """The base on training tasks, to choose the kinds that it can learn from."""
    TRAIN = "train"
    VALIDATION = "validation"
    """Chooses the best checkpoint; never quoted."""
    TEST = "test"
    """Held-out tasks; the quoted result."""
    SHOW = "show"
    """A single session run by hand."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The guard's decision on one tool call; `rule` names what decided, `reason` is for people."""

    decision: Decision
    rule: str
    reason: str = ""
    goal: str = ""
    """What a call that a rule met was after (`tests`, `network`, …); empty for all others."""
    conduct: Conduct = Conduct.CLEAN
    """What the session is from this call on."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call as the model wrote it. `arguments` is the JSON text that the harness gets."""

    id: str
    name: str
    arguments: str
    verdict: Verdict
    malformed: bool = False
    """The text could not be read as a call with a JSON object of arguments; counted, not hidden."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One language-model call of a session, as the engine saw and answered it."""

    index: int
    prompt_ids: list[int]
    output_ids: list[int]
    """Sampled ids, the end-of-turn token included when it was sampled."""
    logprobs: list[float]
    """Sampling log-probabilities of `output_ids`, same length."""
    adapter: str
    """Name the engine served: an adapter name, or `base`."""
    version: int
    """Policy version of `adapter`; 0 for the base."""
    finish: str
    """`stop` or `length`, from the engine."""
    text: str
    """`output_ids` decoded with special tokens kept."""
    calls: list[ToolCall]
    new_messages: list[Message]
    """Messages of this request that the session's previous request did not have, for replay."""
    started: float
    """Unix seconds when the request arrived."""
    seconds: float
    """Time in the engine."""
    cached_tokens: int = 0
    """Prompt tokens that the engine's prefix cache held."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One scored session. `reward` is None where infrastructure failed: never trained, never 0."""

    id: str
    phase: Phase
    harness: str
    profile: str
    arm: str
    """Who played: `raw`, `base`, `oracle`, or an adapter's label such as `pi`."""
    adapter: str
    version: int
    task: str
    family: str
    level: int
    group: str
    """Rollouts with the same group share a task and a policy version."""
    attempt: int
    step: int
    """Training step that the rollout was made for; 0 outside training."""
    temperature: float
    score: float | None
    """The verifier's score in [0, 1]."""
    reward: float | None
    correct: bool | None
    calls: int
    """Tool calls the model made, blocked and malformed ones included."""
    end: SessionEnd
    error: str
    """One line for people when something went wrong, else empty."""
    turns: list[Turn]
    verifier_output: str
    started: float
    seconds: float
    timings: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds by part: setup, agent, freeze, verify; `cpu` where a cgroup measured it."""
    conduct: Conduct = Conduct.CLEAN
    """A cheat is never `correct`, and scores 0 where the guard is enforced."""
    blocked: int = 0
    """Of `calls`, those that the guard kept from the agent."""
    malformed: int = 0
    """Of `calls`, those that could not be read."""
