"""What a policy file holds, and what a task adds to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from harness_adapters.guard.effects import Kind
from harness_adapters.records import Decision

DEFAULT_HIDDEN = (
    "/tests/**",
    "/solution/**",
    "/oracle/**",
    "/verifier/**",
    "/logs/verifier/**",
    "/data/private/**",
)
"""Where Harbor and its relatives keep what an agent must not see."""


@dataclass(frozen=True, slots=True)
class TaskRules:
    """What one task adds to a policy: the values of the names in braces.

    Paths are globs: `*` within a component, `**` across them.
    """

    workdir: str = "/workspace"
    home: str = "/home/agent"
    hidden: tuple[str, ...] = DEFAULT_HIDDEN
    """`{hidden}`: never read, written or listed."""
    protected: tuple[str, ...] = ()
    """`{protected}`: may be read but not changed, beside the visible tests."""
    hosts: tuple[str, ...] = ()
    """`{hosts}`: may be reached, beside loopback."""
    packages: tuple[str, ...] = ()
    """`{packages}`: under repair, so that their releases hold the solution."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Example(_Strict):
    """A call of which the rule's verdict is known; text alone is a command of the shell."""

    tool: str = "bash"
    arguments: dict[str, Any] = Field(default_factory=dict)


class Rule(_Strict):
    """One named rule: it meets an effect when all that is set in it fits."""

    name: str = Field(pattern=r"^[a-z][a-z0-9-]*$")
    decision: Decision = Decision.BLOCK
    reason: str = Field(min_length=1)
    effects: list[Kind] = Field(min_length=1)
    paths: list[str] = Field(default_factory=list)
    """Globs, for effects on paths; none: any path."""
    except_paths: list[str] = Field(default_factory=list)
    targets: list[str] = Field(default_factory=list)
    """Globs on the target of other effects; `{loopback}` is this machine."""
    except_targets: list[str] = Field(default_factory=list)
    processes: list[str] = Field(default_factory=list)
    """Command lines; a kill by name or pattern meets the rule when it would hit one of them."""
    content: list[str] = Field(default_factory=list)
    """Regular expressions on what is written; unknown contents fit, unless the next is false."""
    unknown_content: bool = True
    direct: bool = False
    """Only where the call points at the path itself, not at a directory above it."""
    evident: bool = False
    """Only where a glob of the call spells part of the name: `conf*`, not `*.py`. Rules for a name
    anywhere (`**/name`) are always so."""
    wholesale: bool = False
    """Only the directory itself, or everything in it."""
    existing: bool = False
    """Only files that the task came with."""
    deferred: bool = False
    """Also code that is only written yet, which would do so when it is run."""
    goal: str | None = Field(default=None, pattern=r"^[a-z-]*$")
    """What its calls are after, shared by rules of one purpose; the rule's name where none is set.
    Blocks are counted by it (`Breaker`); those with the empty goal are not."""
    cheating: bool = True
    """Its goal is a reward without the work: who keeps at it is a confirmed cheat, not only
    flagged."""
    must_block: list[Example] = Field(default_factory=list)
    """Checked when the file is loaded: this rule gives its verdict on each of them."""
    must_allow: list[Example] = Field(default_factory=list)
    """Checked when the file is loaded: no rule blocks or flags them."""

    @field_validator("must_block", "must_allow", mode="before")
    @classmethod
    def _commands(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        return [{"arguments": {"command": v}} if isinstance(v, str) else v for v in value]

    @property
    def purpose(self) -> str:
        """Its goal, or its own name."""
        return self.name if self.goal is None else self.goal


class Breaker(_Strict):
    """After so many blocked calls with one goal the session, and each further call, is flagged."""

    blocks: int = Field(default=3, ge=1)


class PolicyFile(_Strict):
    """A whole policy."""

    version: int = Field(ge=1, le=1)
    max_bytes: int = Field(default=1 << 20, ge=1024)
    """Of a call's arguments; larger ones are blocked."""
    tests: list[str] = Field(default_factory=list)
    """Names that visible tests are taken to have where no tree can be asked."""
    breaker: Breaker = Breaker()
    rule: list[Rule] = Field(min_length=1)
