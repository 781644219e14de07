"""One session by hand: for looking at, not for statistics."""

from __future__ import annotations

from pathlib import Path

from harness_adapters.config import Settings
from harness_adapters.engine import BASE
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.engine.models import load_chat_format
from harness_adapters.errors import ModelError, TaskError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.demonstrations import Oracle, demonstration_plan
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import make_runner, open_stack
from harness_adapters.store import Store
from harness_adapters.tasks import Task


async def run_single(
    task: Task,
    settings: Settings,
    *,
    run_dir: Path,
    adapter: Path | None,
    oracle: bool,
    reporter: Reporter,
) -> Rollout:
    """Run `task` once and keep the rollout in `run_dir`'s store."""
    model_dir = resolve_model(
        settings.model.path,
        progress=reporter.say,
        trust_remote_code=settings.model.trust_remote_code,
    )
    store = Store(run_dir)
    try:
        if oracle:
            rollout = await _play_oracle(task, settings, model_dir, run_dir, reporter)
        else:
            rollout = await _play_model(task, settings, model_dir, run_dir, adapter, reporter)
        store.add(rollout)
    finally:
        store.close()
    return rollout


async def _play_oracle(
    task: Task, settings: Settings, model_dir: Path, run_dir: Path, reporter: Reporter
) -> Rollout:
    if not task.oracle:
        raise TaskError(
            f"{task.root}: no solution/oracle.json, so no oracle can play it in an agent"
        )
    chat = load_chat_format(model_dir, settings.model.trust_remote_code)
    engine = ScriptedEngine(chat, max_context=settings.engine.max_context)
    harness = get_harness(settings.harness.name)
    harness.installed()
    runner = make_runner(engine, chat, harness, settings, run_dir / "audit.jsonl")
    reporter.phase(f"one session of {harness.name}, played by the oracle")
    return await Oracle(runner, engine, chat).run(demonstration_plan(task))


async def _play_model(
    task: Task,
    settings: Settings,
    model_dir: Path,
    run_dir: Path,
    adapter: Path | None,
    reporter: Reporter,
) -> Rollout:
    if adapter is not None and not (adapter / "adapter_config.json").is_file():
        raise ModelError(f"{adapter}: not a PEFT adapter directory (no adapter_config.json)")
    async with open_stack(settings, model_dir, run_dir=run_dir, reporter=reporter) as stack:
        name = BASE
        if adapter is not None:
            name = adapter.resolve().name
            await stack.engine.load_adapter(name, adapter.resolve())
        reporter.phase(f"one session of {stack.harness.name}")
        return await stack.runner.run(
            SessionPlan(
                task=task,
                phase=Phase.SHOW,
                arm=name,
                adapter=name,
                version=int(adapter is not None),
                group=task.id,
                attempt=0,
                step=0,
                temperature=settings.eval.temperature,
            )
        )
