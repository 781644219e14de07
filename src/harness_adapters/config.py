"""Typed settings: defaults, then a TOML file, then `--set key=value`.

Settings say what a run is; they are written into the run directory (`config.toml`) and a resumed
run refuses to differ in what its results depend on.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness_adapters.errors import ConfigError


class Section(BaseModel):
    """Base of every settings table: unknown keys are errors, values don't change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelSettings(Section):
    """The model that is adapted."""

    path: str = "smollm2"
    """An embedded model (`smollm2`, `qwen-coder`), a directory, or a Hub repository."""
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    """Number format of the weights in engine and learner. `auto`: bfloat16 where the GPU or CPU has
    instructions for it, else float32; a run keeps what it began with."""
    trust_remote_code: bool = False
    """Run the Python files that come with a checkpoint where it needs them: its author's code."""


class EngineSettings(Section):
    """The inference server."""

    kind: Literal["auto", "vllm", "transformers"] = "auto"
    url: str | None = None
    """Attach to a running vLLM instead of starting one."""
    max_context: int = Field(4096, ge=512)
    max_loras: int = Field(4, ge=1)
    max_lora_rank: int = Field(16, ge=1)
    threads: int = Field(2, ge=1)
    kv_cache_gib: float = Field(2.0, gt=0)


class HarnessSettings(Section):
    """The agent that the adapter is trained in."""

    name: str = "pi"
    """A known harness, or a harness file (`….toml`)."""
    profile: Literal["stock", "lean"] = "lean"


class GuardSettings(Section):
    """What judges tool calls."""

    policy: str = "default"
    """`default`: the shipped rules; `off`: every call passes; else a policy file (`….toml`)."""
    enforce: bool = True
    """Keep blocked calls from the agent, and score confirmed cheats 0. Otherwise verdicts only go
    on record."""
    retries: int = Field(2, ge=0)
    """How often within one request a model is told of its block and sampled again, where the guard
    left no call. 0: the notice is its last word, which ends the session of most agents."""


class BudgetSettings(Section):
    """Limits of one session; the same in training and in evaluation, or the run is refused."""

    max_turns: int = Field(5, ge=1)
    max_tokens_per_turn: int = Field(160, ge=1)
    max_session_tokens: int = Field(12_000, ge=1)
    """Prompt + output tokens of the longest turn."""
    wall_seconds: float = Field(180.0, gt=0)


class RewardSettings(Section):
    """R = score + bonus * max(0, 1 - calls / call_budget) - fault_cost * faults, at least 0; the
    bonus only for correct rollouts."""

    bonus: float = Field(0.1, ge=0.0)
    call_budget: int = Field(15, ge=1)
    fault_cost: float = Field(0.0, ge=0.0)
    """Taken off for each blocked or malformed call, beside the bonus that each call costs; a reward
    never falls below 0 by it."""


class WarmStartSettings(Section):
    """Supervised start on scripted-oracle demonstrations; `steps = 0` leaves it out."""

    steps: int = Field(14, ge=0)
    batch: int = Field(16, ge=1)
    learning_rate: float = Field(5e-4, gt=0)
    demonstrations: int = Field(210, ge=1)
    seed: int = 0


class LoraSettings(Section):
    """Shape of the adapter."""

    rank: int = Field(4, ge=1)
    alpha: int = Field(8, ge=1)
    targets: str | list[str] = "all-linear"


class TrainSettings(Section):
    """Reinforcement learning; names follow TRL's where it has one."""

    steps: int = Field(20, ge=1)
    groups: int = Field(8, ge=1)
    """Tasks per step."""
    num_generations: int = Field(8, ge=2)
    """Rollouts per task."""
    probe_generations: int = Field(4, ge=2)
    """Rollouts of a task before the rest: where these all succeed or all fail, no more follow."""
    num_iterations: int = Field(1, ge=1)
    """Optimizer steps on the rollouts of one step."""
    learning_rate: float = Field(1.5e-3, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    max_grad_norm: float = Field(1.0, gt=0)
    warmup_steps: int = Field(0, ge=0)
    temperature: float = Field(0.8, gt=0)
    loss: Literal["cispo", "grpo", "dapo", "gspo"] = "cispo"
    advantage: Literal["mean", "grpo", "dr_grpo", "rloo", "gated"] = "mean"
    normalisation: Literal["rollout", "token", "constant"] = "rollout"
    constant_tokens: int = Field(512, ge=1)
    """What `constant` normalisation takes for a rollout's number of tokens."""
    epsilon_low: float | None = Field(None, ge=0)
    epsilon_high: float | None = Field(None, ge=0)
    """Sides of the clip, [1 - epsilon_low, 1 + epsilon_high]; none: as published for the loss."""
    ratio_mask: Literal["token", "rollout", "none"] = "token"
    ratio_min: float = 0.125
    ratio_max: float = 8.0
    """Tokens (or rollouts) whose importance ratio leaves [ratio_min, ratio_max] are masked."""
    ratio_cap: float = 4.0
    beta: float = Field(0.0, ge=0)
    """Weight of the divergence from the model without its adapter: a brake against collapse."""
    min_signal: float = 0.002
    """No optimizer step when the mean |advantage| is below this: Adam would rescale noise."""
    max_staleness: int = Field(2, ge=0)
    synchronous: bool = False
    """On-policy: sampling waits for the update."""
    token_budget: int = Field(1024, ge=64)
    """Distinct tokens of one micro-batch beyond the shared trunk."""
    gradient_checkpointing: bool = False
    """Keep only what enters each layer and compute the rest again in the backward pass."""
    validate_every: int = Field(5, ge=1)
    validation_tasks: int = Field(48, ge=1)
    seed: int = 0
    threads: int = Field(2, ge=1)
    device: str = "auto"
    processes: int = Field(1, ge=1)
    """Processes that share each update, one for each GPU."""


LEARNABLE = {
    "add_function": (1, 2, 3),
    "count_text": (1, 3),
    "join_files": (1, 2),
    "log_count": (1, 2),
    "move_files": (1, 2, 3),
    "pick_lines": (1, 2),
    "remove_files": (2,),
    "rename_name": (1, 2),
    "replace_word": (1, 3),
    "run_program": (1, 2),
    "set_value": (1, 2),
    "sort_lines": (1, 3),
    "unique_lines": (2,),
    "write_script": (1, 2, 3),
}
"""Families and levels that the warm-started embedded model solves sometimes in pi: one to three
times of four at temperature 0.8, on training tasks (`harness-adapters tasks difficulty`)."""


class TaskSettings(Section):
    """Where tasks come from. `starter` is the built-in procedural suite."""

    dataset: str = "starter"
    seed: int = 0
    families: list[str] = list(LEARNABLE)
    """Families of the starter suite to write; those that only its test split has stay apart. Empty:
    all. The default leaves out what a 135M model saturates at once or never solves."""
    kinds: list[str] = []
    """Kinds (`family/level`) to train on, to validate and to quote; the warm start demonstrates
    the dataset's others too. Empty: those of `LEARNABLE` where they hold (`known_kinds`), else the
    base shows which (`probe`), or all."""
    probe: int = Field(4, ge=0)
    """Sessions of each kind that the base plays on training tasks, to choose the kinds. 0: none is
    played, and all kinds are taken."""
    learnable: int = Field(20, ge=1)
    """How many kinds are chosen: those whose pass rate is nearest one half. Nothing is probed where
    the dataset has no more."""
    train: int = Field(630, ge=1)
    validation: int = Field(84, ge=1)
    test: int = Field(420, ge=1)
    """Sizes of the starter suite's splits."""


class EvalSettings(Section):
    """Paired evaluation."""

    tasks: int = Field(60, ge=1)
    """Held-out tasks of families that training has tasks of: the quoted figure."""
    unseen_tasks: int = Field(18, ge=0)
    """Held-out tasks of families that training never saw, reported apart."""
    attempts: int = Field(1, ge=1)
    temperature: float = Field(0.8, ge=0)
    raw_tasks: int = Field(8, ge=0)
    """Tasks on which the raw model, before the warm start, is shown."""


class PriceSettings(Section):
    """What things cost you, in dollars; all 0: no prices are shown."""

    engine_hour: float = Field(0.0, ge=0)
    """An hour of the machine that the engine runs on, such as a GPU-hour."""
    cpu_hour: float = Field(0.0, ge=0)
    """A core-hour of sandboxes, where they run on machines of their own."""
    million_prompt: float = Field(0.0, ge=0)
    """A million prompt tokens that no cache held, where tokens are what is paid for."""
    million_cached: float = Field(0.0, ge=0)
    """A million prompt tokens from the cache."""
    million_output: float = Field(0.0, ge=0)
    """A million output tokens."""

    @property
    def known(self) -> bool:
        """Whether any price is set."""
        return any(self.model_dump().values())


class Settings(Section):
    """Everything a run is made of."""

    model: ModelSettings = ModelSettings()
    engine: EngineSettings = EngineSettings()
    harness: HarnessSettings = HarnessSettings()
    guard: GuardSettings = GuardSettings()
    budget: BudgetSettings = BudgetSettings()
    reward: RewardSettings = RewardSettings()
    warm_start: WarmStartSettings = WarmStartSettings()
    lora: LoraSettings = LoraSettings()
    train: TrainSettings = TrainSettings()
    tasks: TaskSettings = TaskSettings()
    eval: EvalSettings = EvalSettings()
    price: PriceSettings = PriceSettings()
    concurrency: int = Field(24, ge=1)
    """Sessions in flight."""

    @model_validator(mode="after")
    def _adapter_fits_engine(self) -> Settings:
        if self.engine.url is None and self.lora.rank > self.engine.max_lora_rank:
            raise ValueError(
                f"lora.rank {self.lora.rank} is above engine.max_lora_rank "
                f"{self.engine.max_lora_rank}: raise the latter"
            )
        return self


def known_kinds(settings: Settings) -> list[str]:
    """Kinds that need no probing: `LEARNABLE`, for the model, agent and suite that it holds for.

    Empty for any other.
    """
    default = Settings()
    same = (
        settings.tasks.probe > 0
        and settings.model.path == default.model.path
        and settings.harness == default.harness
        and settings.budget == default.budget
        and settings.warm_start == default.warm_start
        and settings.tasks.dataset == default.tasks.dataset
        and settings.tasks.families == default.tasks.families
    )
    return [f"{family}/{level}" for family in LEARNABLE for level in LEARNABLE[family] if same]


def load(
    file: Path | None = None,
    overrides: list[str] | None = None,
    *,
    begin: Settings | None = None,
) -> Settings:
    """`begin` (the defaults), overlaid by `file`, overlaid by `overrides` (`section.key=value`).

    Raises ConfigError with the file or flag, the key and what it must be.
    """
    values: dict[str, Any] = begin.model_dump() if begin is not None else {}
    if file is not None:
        try:
            _merge(values, tomllib.loads(file.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise ConfigError(f"no config file {file}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: not TOML: {error}") from None
        except OSError as error:
            raise ConfigError(f"{file}: can't be read: {error.strerror}") from None
    for override in overrides or []:
        _overlay(values, override)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        where = f"{file} or --set" if file else "--set"
        raise ConfigError(f"{where}: {key}: {first['msg']} (got {first['input']!r})") from None


def _merge(values: dict[str, Any], over: dict[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(values.get(key), dict):
            _merge(values[key], value)
        else:
            values[key] = value


def _overlay(values: dict[str, Any], override: str) -> None:
    key, sign, text = override.partition("=")
    if not sign or not key.strip():
        raise ConfigError(f"--set {override!r}: write section.key=value")
    try:
        value: Any = tomllib.loads(f"v = {text}")["v"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, leaf = key.strip().split(".")
    table = values
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ConfigError(f"--set {override!r}: {parent} is not a table")
    table[leaf] = value


def dump(settings: Settings) -> str:
    """The settings as TOML; `load` reads it back to an equal object."""
    lines: list[str] = []
    tables: list[str] = []
    for name, value in settings.model_dump().items():
        if isinstance(value, dict):
            tables.append(f"\n[{name}]")
            tables += [f"{k} = {_toml(v)}" for k, v in value.items() if v is not None]
        else:
            lines.append(f"{name} = {_toml(value)}")
    return "\n".join(lines + tables) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    # JSON's escapes are TOML's too; DEL is the one character that only TOML wants escaped.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
