"""The warm-started base: demonstrations by a scripted oracle, then a short supervised run.

A small model that can't make a tool call yet has nothing to explore, so reinforcement learning
would never start. The warm-started weights are the *base* that an adapter is measured against.
Both the demonstrations and the weights are cached under a key of everything they depend on.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.config import Settings
from harness_adapters.engine.models import load_chat_format
from harness_adapters.engine.precision import settled
from harness_adapters.errors import LearnerError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.harness.registry import get_harness
from harness_adapters.learner.client import warm_start_in_process
from harness_adapters.locks import DirectoryLock
from harness_adapters.paths import models_dir
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.demonstrations import Oracle, demonstration_plan, spread
from harness_adapters.rollout.pool import Pool
from harness_adapters.rollout.stack import make_runner
from harness_adapters.store import Store
from harness_adapters.tasks import Dataset, Split, Task
from harness_adapters.tasks.dataset import task_hash

RECIPE = 2
"""Raise when the demonstrations or the supervised run change what they produce."""


@dataclass(frozen=True, slots=True)
class WarmBase:
    """A warm-started model and what is known of how it was made."""

    model_dir: Path
    facts: dict[str, Any]
    """`key`, `demonstrations`, `seconds` it took when it was made, `losses` by step, `weights`
    (a hash)."""


async def warm_base(
    settings: Settings,
    raw_dir: Path,
    dataset: Dataset,
    reporter: Reporter,
    *,
    harnesses: Sequence[str] = (),
) -> WarmBase:
    """The cached warm-started base for these settings, made first where it is missing.

    With `harnesses` the demonstrations are played in all of these, an equal number in each;
    without, in the settings' own.
    """
    settings = settled(settings)
    harnesses = sorted(harnesses) or [settings.harness.name]
    key = _key(settings, raw_dir, dataset, harnesses)
    home = models_dir() / f"{raw_dir.name}-warm-{key}"
    model_dir = home / "model"
    lock = DirectoryLock(home)
    store = Store(home)
    try:
        facts = store.fact("warm_base")
        if facts is None or not (model_dir / "config.json").is_file():
            facts = await _make(settings, raw_dir, model_dir, dataset, store, reporter, harnesses)
            facts["key"] = key
            store.set_fact("warm_base", facts)
    finally:
        store.close()
        lock.release()
    return WarmBase(model_dir, facts)


async def _make(
    settings: Settings,
    raw_dir: Path,
    model_dir: Path,
    dataset: Dataset,
    store: Store,
    reporter: Reporter,
    harnesses: Sequence[str],
) -> dict[str, Any]:
    start = time.monotonic()
    rollouts: list[Rollout] = []
    for name in harnesses:
        count = settings.warm_start.demonstrations // len(harnesses)
        rollouts += await demonstrate(settings, raw_dir, dataset, store, reporter, name, count)
    reporter.phase("warm start: supervised steps", settings.warm_start.steps)
    result = await warm_start_in_process(
        store.root,
        raw_dir,
        model_dir,
        settings=settings.warm_start,
        rollout_ids=[rollout.id for rollout in rollouts],
        on_step=lambda step, loss: reporter.advance(1, f"loss {loss:.3f}"),
        dtype=settings.model.dtype,
        device=settings.train.device,
        token_budget=settings.train.token_budget,
        trust_remote_code=settings.model.trust_remote_code,
    )
    weights = sorted(model_dir.glob("*.safetensors"))
    return {
        "demonstrations": len(rollouts),
        "seconds": time.monotonic() - start,
        "losses": result["losses"],
        "weights": hashlib.sha256("".join(map(file_hash, weights)).encode()).hexdigest(),
    }


async def demonstrate(
    settings: Settings,
    raw_dir: Path,
    dataset: Dataset,
    store: Store,
    reporter: Reporter,
    harness_name: str,
    count: int,
) -> list[Rollout]:
    """`count` solved oracle sessions on training tasks, in the order of the tasks' ids.

    Sessions that the store holds are not run again, unless they failed.
    """
    chat = load_chat_format(raw_dir, settings.model.trust_remote_code)
    harness = get_harness(harness_name)
    harness.installed()
    engine = ScriptedEngine(chat, max_context=settings.engine.max_context)
    runner = make_runner(engine, chat, harness, settings, store.root / "audit.jsonl")
    tasks = demonstrated(dataset, count)
    before = store.rollouts(phase=Phase.DEMONSTRATION)
    done = {r.task: r for r in before if r.correct and r.harness == harness.name}
    plans = [demonstration_plan(task) for task in tasks if task.id not in done]
    reporter.phase(f"demonstrations by the oracle in {harness.name}", len(plans))
    pool = Pool(Oracle(runner, engine, chat), settings.concurrency, store.add)
    fresh = await pool.run(plans, lambda _: reporter.advance(1))
    wanted = {task.id for task in tasks}
    rollouts = [*(r for r in done.values() if r.task in wanted), *fresh]
    failed = [rollout for rollout in rollouts if not rollout.correct]
    if failed:
        worst = failed[0]
        raise LearnerError(
            f"{len(failed)} of {len(rollouts)} oracle sessions did not solve their task, first "
            f"{worst.task}: {worst.error or worst.verifier_output[-200:]!r}; check it with "
            "`harness-adapters tasks validate`"
        )
    return sorted(rollouts, key=lambda rollout: rollout.task)


def demonstrated(dataset: Dataset, count: int) -> list[Task]:
    """The training tasks that the oracle plays, every kind as evenly as possible."""
    return spread([task for task in dataset.split(Split.TRAIN) if task.oracle], count)


def file_hash(path: Path) -> str:
    """sha256 of a file's content, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _key(settings: Settings, raw_dir: Path, dataset: Dataset, harnesses: Sequence[str]) -> str:
    """Twelve hex digits of everything that the demonstrations and the weights depend on."""
    count = settings.warm_start.demonstrations // len(harnesses)
    played = [
        [harness.name, harness.version, settings.harness.profile]
        for harness in map(get_harness, harnesses)
    ]
    model = {
        file.name: file_hash(file)
        for file in sorted(raw_dir.iterdir())
        if file.suffix in (".json", ".jinja", ".py", ".safetensors")
    }
    parts = {
        "recipe": RECIPE,
        "model": model,
        "dtype": settings.model.dtype,
        "warm_start": settings.warm_start.model_dump(),
        "harness": played[0] if len(played) == 1 else played,
        "context": settings.engine.max_context,
        "budget": settings.budget.model_dump(),
        "tasks": [[task.id, task_hash(task)] for task in demonstrated(dataset, count)],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
