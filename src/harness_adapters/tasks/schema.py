"""Harbor's task.toml (schema 1.0 to 1.4), read strictly.

Field names and defaults are Harbor's. What this project can't honour (images, GPUs, a network,
several steps, users, …) is refused by name instead of being ignored: a task that runs without what
it asked for gives wrong rewards. Harbor leaves `[metadata]` free; seven keys of it are ours:
`family`, `level`, `seed`, `split`, `guard`, and where a task was made from a recorded session its
`source` and `session`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness_adapters.errors import TaskError

DEFAULT_WORKDIR = "/app"
SCHEMA_VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
_DIFFICULTY = {"easy": 1, "medium": 2, "hard": 3}
_SIZES = {"K": 1 / 1024, "M": 1, "G": 1024}

_UNSUPPORTED = {
    "steps": "tasks of several steps aren't supported; make one task directory of each step",
    "multi_step_reward_strategy": "tasks of several steps aren't supported; remove it",
    "artifacts": "only the working directory is carried to the verifier; remove it",
    "solution.env": "the oracle runs without extra variables; set them in solve.sh",
    "agent.user": "the agent always runs as an unprivileged user; remove it",
    "agent.allowed_hosts": "sessions have no network; remove it",
    "verifier.user": "the verifier always runs as an unprivileged user; remove it",
    "verifier.env": "the verifier's environment is fixed; set variables in test.sh",
    "verifier.environment": "the verifier runs in a fresh copy of the task; remove it",
    "verifier.collect": "hooks into services aren't supported; remove it",
    "verifier.allowed_hosts": "the verifier has no network; remove it",
    "environment.docker_image": "images aren't pulled; put the files under environment/files/",
    "environment.gpus": "sandboxes have no GPU; remove the key or the task",
    "environment.gpu_types": "sandboxes have no GPU; remove the key or the task",
    "environment.tpu": "sandboxes have no TPU; remove the key or the task",
    "environment.mcp_servers": "MCP servers aren't started; remove the key or the task",
    "environment.env": "the sandbox's environment is fixed; use a file that the agent can read",
    "environment.skills_dir": "skills aren't copied into the agent's home; remove it",
    "environment.healthcheck": "no service is started; remove the key or the task",
    "environment.allowed_hosts": "sandboxes have no network; remove the key or the task",
}
"""Keys of Harbor's schema that are refused unless they are empty, with what to do."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskGuard(BaseModel):
    """`[metadata.guard]`: what a task adds to the guard's policy.

    Paths are globs, absolute or below the working directory: `*` within a component, `**` across
    them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden_paths: tuple[str, ...] = ()
    """Never read, written or listed, beside Harbor's own (/tests, /solution, ...)."""
    protected_paths: tuple[str, ...] = ()
    """May be read but not changed."""
    allowed_hosts: tuple[str, ...] = ()
    """May be reached, as far as the sandbox has a network at all."""
    packages: tuple[str, ...] = ()
    """Under repair: a released version of them holds the solution."""

    @field_validator("hidden_paths", "protected_paths", "allowed_hosts", "packages")
    @classmethod
    def _named(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for value in values:
            if not value.strip("/. ") or ".." in value.split("/"):
                raise ValueError(f"{value!r} names nothing below a root")
        return values


class _Metadata(BaseModel):
    """`[metadata]`: free in Harbor, so unknown keys pass."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    guard: TaskGuard = TaskGuard()
    confined_modules: list[str] = Field(default_factory=list[str])
    """Python modules of the agent's that tests import: they get them at arm's length."""

    @field_validator("confined_modules")
    @classmethod
    def _dotted(cls, names: list[str]) -> list[str]:
        for name in names:
            if not all(part.isidentifier() for part in name.split(".")):
                raise ValueError(f"{name!r} is no name of a module")
        return names

    category: str = ""
    difficulty: str = ""
    family: str = ""
    level: int | None = Field(default=None, ge=1)
    seed: int = 0
    split: Literal["train", "validation", "test"] = "test"
    source: str = ""
    session: str = ""

    @property
    def level_or_difficulty(self) -> int:
        """`level`, else Harbor's difficulty as a number: easy 1, medium 2, hard 3, other 1."""
        return self.level or _DIFFICULTY.get(self.difficulty.lower(), 1)

    @property
    def source_session(self) -> str:
        """The recorded session with its source; empty where the task was not made from one."""
        return f"{self.source}/{self.session}" if self.session else ""


class _Agent(_Table):
    timeout_sec: float = Field(default=600.0, gt=0)
    network_mode: Literal["no-network"] | None = None


class _Verifier(_Table):
    timeout_sec: float = Field(default=600.0, gt=0)
    environment_mode: Literal["separate"] | None = None
    network_mode: Literal["no-network"] | None = None


class _Environment(_Table):
    build_timeout_sec: float | None = None
    os: Literal["linux"] = "linux"
    cpus: float | None = None
    memory_mb: int = Field(default=2048, ge=64)
    storage_mb: int | None = None
    network_mode: Literal["no-network"] | None = None
    allow_internet: Literal[False] | None = None
    workdir: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _old_sizes(cls, data: Any) -> Any:
        """`memory = "2G"` and `storage = "10G"` are Harbor's spelling before schema 1.1."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        for old in ("memory", "storage"):
            if old not in data:
                continue
            match = re.fullmatch(r"(\d+(?:\.\d+)?)([KMG])", str(data.pop(old)).strip().upper())
            if match is None:
                raise ValueError(f"{old} must be a size such as 2G; better use {old}_mb")
            size = int(float(match[1]) * _SIZES[match[2]])
            if data.setdefault(f"{old}_mb", size) != size:
                raise ValueError(f"{old} and {old}_mb contradict each other; keep {old}_mb")
        return data

    @field_validator("os", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @field_validator("workdir")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None:
            check_workdir(value)
        return value


class TaskConfig(_Table):
    """task.toml, checked."""

    schema_version: Literal["1.0", "1.1", "1.2", "1.3", "1.4"] = "1.4"
    source: str | None = None
    task: dict[str, Any] = Field(default_factory=dict[str, Any])
    metadata: _Metadata = _Metadata()
    agent: _Agent = _Agent()
    verifier: _Verifier = _Verifier()
    environment: _Environment = _Environment()
    solution: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=0)


def check_workdir(value: str) -> None:
    """Raise ValueError unless `value` may be a sandbox's working directory."""
    path = PurePosixPath(value)
    system = (
        "bin",
        "dev",
        "etc",
        "lib",
        "lib64",
        "logs",
        "proc",
        "sbin",
        "solution",
        "sys",
        "tests",
        "usr",
    )
    if not path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
        raise ValueError(f"workdir {value!r} must be an absolute path below /")
    if path.parts[1] in system:
        raise ValueError(f"workdir {value!r} is a system directory; use {DEFAULT_WORKDIR}")


def read_text(path: Path) -> str:
    """UTF-8 text of a file; TaskError when it isn't."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise TaskError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise TaskError(f"{path}: can't be read ({error.strerror}); check its rights") from None


def read_config(path: Path) -> TaskConfig:
    """Parse and check a task.toml."""
    try:
        data = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise TaskError(f"{path}: not valid TOML ({error}); correct that line") from None
    if "version" in data:
        data.setdefault("schema_version", data.pop("version"))
    for dotted, advice in _UNSUPPORTED.items():
        table, key = _parent(data, dotted)
        if key in table and table.pop(key):
            raise TaskError(f"{path}: {dotted} is not supported: {advice}")
    try:
        return TaskConfig.model_validate(data)
    except ValidationError as error:
        raise TaskError(f"{path}: {_explain(error)}") from None


def _parent(data: dict[str, Any], dotted: str) -> tuple[dict[str, Any], str]:
    """The table that would hold a dotted key, and the key's last part."""
    *tables, key = dotted.split(".")
    for name in tables:
        value = data.get(name, {})
        if not isinstance(value, dict):
            return {}, key
        data = value
    return data, key


_ADVICE = {
    "schema_version": f"known versions are {', '.join(SCHEMA_VERSIONS)}",
    "network_mode": 'sandboxes have no network; write "no-network" or remove the key or the task',
    "allow_internet": "sandboxes have no network; write false or remove the key or the task",
    "environment_mode": 'the verifier runs in a fresh sandbox; write "separate" or remove it',
    "os": "only linux tasks run here",
    "split": "write train, validation or test",
}


def _explain(error: ValidationError) -> str:
    """The first problem as `key: what; what to do`."""
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    name = str(first["loc"][-1]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return f"{key}: unknown key; correct its spelling or remove it"
    if name in _ADVICE:
        return f"{key} = {first['input']!r}: {_ADVICE[name]}"
    return f"{key} = {first['input']!r}: {first['msg'].removeprefix('Value error, ')}; correct it"


def read_environment(environment: Path) -> str | None:
    """Check `environment/`; the working directory that its Dockerfile names, if any.

    No image is built. A Dockerfile passes when all it does is set a base, a working directory and
    copy `files/`, which is what a sandbox gives anyway.
    """
    for name in ("docker-compose.yaml", "docker-compose.yml"):
        if (environment / name).exists():
            raise TaskError(f"{environment / name}: services aren't started; remove the task")
    dockerfile = environment / "Dockerfile"
    if not dockerfile.exists():
        return None
    workdir = None
    text = re.sub(r"\\\n", " ", read_text(dockerfile))
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        match words[0].upper(), words[1:]:
            case "FROM" | "LABEL" | "MAINTAINER", _:
                pass
            case "WORKDIR", [value]:
                try:
                    check_workdir(value)
                except ValueError as error:
                    raise TaskError(f"{dockerfile}: {error}") from None
                workdir = value
            case "COPY", [source, _] if source.rstrip("/.").removeprefix("./") == "files":
                pass
            case _:
                raise TaskError(
                    f"{dockerfile}: `{line.strip()[:60]}` is not supported: images aren't built; "
                    "put what the agent needs under environment/files/"
                )
    return workdir
