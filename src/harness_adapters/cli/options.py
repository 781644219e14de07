"""Options that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Settings as TOML (see docs/configuration.md)."),
]
Overrides: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", help="One setting, e.g. --set train.steps=8; may be repeated."),
]
Model: TypeAlias = Annotated[
    str | None,
    typer.Option("--model", help="smollm2, qwen-coder, a model directory or a Hub repository."),
]
HarnessName: TypeAlias = Annotated[
    str | None,
    typer.Option("--harness", help="The agent to run in: pi, opencode, hermes or FILE.toml."),
]
EngineUrl: TypeAlias = Annotated[
    str | None, typer.Option("--engine", help="URL of a running vLLM to use instead of an own one.")
]


def harness_spec(value: str) -> str:
    """A harness's name as it is; a harness file by its whole path, for runs that are continued."""
    return str(Path(value).expanduser().absolute()) if value.endswith(".toml") else value


def overrides(
    given: list[str] | None,
    *,
    model: str | None = None,
    harness: str | None = None,
    engine: str | None = None,
) -> list[str]:
    """The `--set` list, with the dedicated flags appended as settings."""
    result = list(given or [])
    harness = harness_spec(harness) if harness else None
    for key, value in (("model.path", model), ("harness.name", harness), ("engine.url", engine)):
        if value is not None:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            result.append(f'{key}="{escaped}"')
    return result
