"""Publishing: a directory that a stranger can use, with a card that claims what was measured."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from harness_adapters import __version__
from harness_adapters.adapters.prompt import sent_prompt
from harness_adapters.adapters.source import (
    BASE_FOLDER,
    CARD,
    CONFIG,
    TRAINED_ON,
    WEIGHTS,
    Adapter,
    find_adapter,
)
from harness_adapters.config import Settings
from harness_adapters.engine.embedded import EMBEDDED
from harness_adapters.errors import HarnessAdaptersError, ModelError
from harness_adapters.evaluation.compare import plain, to_json
from harness_adapters.evaluation.headline import apart
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Reporter
from harness_adapters.report.data import RunData, read_run
from harness_adapters.training.run import write_whole
from harness_adapters.training.warm_base import file_hash

FORMAT = 1
"""Of `adapter_card.json`."""


def publish(run_dir: Path, out: Path | None, reporter: Reporter) -> Path:
    """Write the run's best adapter with its card to `out` (`RUN/published/NAME`); that path.

    The base goes along where it can't be had by name (a warm start). Raises ModelError where the
    run has no adapter, or `out` holds something else.
    """
    adapter = find_adapter(run_dir)
    if adapter.origin is None:
        raise ModelError(f"{run_dir}: not a run: its card can't be written")
    out = out or run_dir / "published" / adapter.label
    if out.exists() and any(out.iterdir()) and not (out / CARD).is_file():
        raise ModelError(f"{out} holds something else: name an empty directory with --out")
    out.mkdir(parents=True, exist_ok=True)
    run = read_run(run_dir)
    settings = adapter.origin.settings
    base = adapter.base(reporter.say)
    portable = named(settings)
    own_base = portable is None or run.warm is not None
    if own_base:
        reporter.say(f"the base goes along: {base} can't be had by name")
        _copy_tree(base, out / BASE_FOLDER)
    card = _card(run, adapter, settings, base, None if own_base else portable, reporter)
    peft = {**adapter.peft, "base_model_name_or_path": portable if not own_base else BASE_FOLDER}
    write_whole(out / CONFIG, json.dumps(peft, indent=2) + "\n")
    _copy(adapter.path / WEIGHTS, out / WEIGHTS)
    prints = [one.to_json() for one in adapter.origin.trained_on]
    write_whole(out / TRAINED_ON, json.dumps({"tasks": prints}) + "\n")
    write_whole(out / "README.md", _readme(card))
    write_whole(out / CARD, json.dumps(card, indent=2) + "\n")
    return out


def named(settings: Settings) -> str | None:
    """The model's name where others can have it by that; None for a directory."""
    path = settings.model.path
    return path if path in EMBEDDED or not Path(path).is_dir() else None


def _card(
    run: RunData,
    adapter: Adapter,
    settings: Settings,
    base: Path,
    base_name: str | None,
    reporter: Reporter,
) -> dict[str, Any]:
    harness = get_harness(settings.harness.name)
    weights = sorted(base.glob("*.safetensors"))
    portable = settings.model_dump()
    # A stranger has no use for places on this machine.
    portable["model"]["path"] = base_name or BASE_FOLDER
    portable["harness"]["name"] = harness.name
    portable["engine"]["url"] = None
    if settings.tasks.dataset != "starter":
        portable["tasks"]["dataset"] = Path(settings.tasks.dataset).name
    c = run.comparison
    return {
        "format": FORMAT,
        "name": adapter.label,
        "made_with": f"harness-adapters {__version__}",
        "weights_sha256": adapter.sha256,
        "base": {
            "name": base_name,
            "folder": None if base_name else BASE_FOLDER,
            "model": settings.model.path if named(settings) else Path(settings.model.path).name,
            "warm_start": run.warm.key if run.warm else None,
            "weights_sha256": [file_hash(file) for file in weights],
        },
        "harness": {
            "name": harness.name,
            "version": harness.version,
            "profile": str(settings.harness.profile),
            "prompt_sha256": _prompt(harness, settings, reporter),
        },
        "dataset": run.dataset,
        "training": {
            "steps": len(run.steps),
            "best": run.best,
            "sessions_by_phase": run.phases,
            "minutes": run.minutes,
        },
        "evaluation": None
        if c is None
        else {
            "headline": run.headline(),
            "apart": apart(c),
            "tasks": len(run.evaluation.tasks or ()),
            "temperature": run.evaluation.temperature,
            "comparison": to_json(c),
        },
        "environment": plain(run.environment),
        "settings": portable,
    }


def _prompt(harness: Harness, settings: Settings, reporter: Reporter) -> str | None:
    """Hash of the system prompt and tools that the agent sends."""
    try:
        return sent_prompt(harness, Profile(settings.harness.profile))
    except HarnessAdaptersError as error:
        reporter.say(f"the prompt's hash is left out of the card: {error}")
        return None


def _readme(card: dict[str, Any]) -> str:
    harness, base, evaluation = card["harness"], card["base"], card["evaluation"]
    settings = card["settings"]
    result = "**Not evaluated yet**: no held-out result stands behind this adapter."
    limits = ["Nothing says how good it is: evaluate it before relying on it."]
    if evaluation is not None:
        result = f"> **{evaluation['headline']}**\n\n{evaluation['apart']}".rstrip()
        comparison = evaluation["comparison"]
        limits = [
            "The figures are over tasks of the kind it was trained on; they say nothing about "
            "other work.",
            f"{comparison['pairs']} pairs of sessions on {comparison['tasks']} tasks, clustered "
            "by task; sampling is not the same twice.",
        ]
    where = f"`{base['name']}`" if base["name"] else f"the weights in `{BASE_FOLDER}/`"
    warm = " (a supervised warm start of it)" if base["warm_start"] else ""
    front = ["library_name: peft", "tags:", "- lora", "- harness-adapters", f"- {harness['name']}"]
    if base["name"] and "/" in base["name"]:
        front.insert(0, f"base_model: {base['name']}")
    limits += [
        f"It fits {where} only, and the prompt of {harness['name']} {harness['version']} "
        f"({harness['profile']} profile).",
        "A model that edits files and runs commands can do harm: keep the guard on.",
    ]
    bullet = "\n".join(f"- {line}" for line in limits)
    budget = ", ".join(f"{k} {v}" for k, v in settings["budget"].items())
    training = card["training"]
    return f"""---
{chr(10).join(front)}
---

# {card["name"]}

A LoRA adapter that makes {base["model"]}{warm} better inside {harness["name"]}
{harness["version"]}, trained there by reinforcement learning with {card["made_with"]}.

{result}

## Use it

```bash
harness-adapters use {harness["name"]} --adapter DIRECTORY
```

starts the engine, the guard and your own {harness["name"]} on it.

## How it was made

| | |
|---|---|
| base | {where}{warm} |
| agent | {harness["name"]} {harness["version"]}, profile {harness["profile"]} |
| training | {training["steps"]} steps, {training["minutes"]:.0f} minutes in all |
| budget of a session | {budget} |
| LoRA | rank {settings["lora"]["rank"]}, alpha {settings["lora"]["alpha"]} |
| tasks | {settings["tasks"]["dataset"]}, `{str(card["dataset"].get("hash", ""))[:12]}` |

All settings, hashes and figures stand in `{CARD}`; fingerprints of the tasks that it was trained
and chosen on in `{TRAINED_ON}`: an evaluation refuses these.

## Limits

{bullet}
"""


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for file in sorted(source.iterdir()):
        if file.is_file():
            _copy(file, target / file.name)


def _copy(source: Path, target: Path) -> None:
    """A hard link where the file system allows it: weights are large."""
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        os.link(source, partial)
    except OSError:
        shutil.copyfile(source, partial)
    partial.replace(target)
