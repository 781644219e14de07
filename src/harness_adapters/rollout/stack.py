"""Engine, gateway, harness and runner of one model, opened and closed together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_adapters.config import Settings
from harness_adapters.engine import ChatFormat, Engine
from harness_adapters.engine.models import load_chat_format
from harness_adapters.engine.precision import settled
from harness_adapters.engine.start import start_engine
from harness_adapters.gateway.server import Gateway
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policy import policy_named
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.progress import Reporter
from harness_adapters.rollout.session import SessionRunner
from harness_adapters.rollout.share import Share
from harness_adapters.sandbox import clean_leftovers


@dataclass(frozen=True, slots=True)
class Stack:
    """What sessions of one model in one harness need."""

    engine: Engine
    chat: ChatFormat
    harness: Harness
    runner: SessionRunner
    share: Share | None = None
    """Slots that other stacks on the same engine use too."""


def make_runner(
    engine: Engine, chat: ChatFormat, harness: Harness, settings: Settings, audit: Path
) -> SessionRunner:
    """A session runner over an engine that is already there."""
    return SessionRunner(
        gateway=Gateway(
            engine,
            chat,
            policy_named(settings.guard.policy, enforced=settings.guard.enforce),
            AuditLog(audit),
            enforced=settings.guard.enforce,
            retries=settings.guard.retries,
        ),
        harness=harness,
        profile=Profile(settings.harness.profile),
        budget=settings.budget,
        reward=settings.reward,
        max_context=engine.max_context,
    )


@asynccontextmanager
async def open_stack(
    settings: Settings, model_dir: Path, *, run_dir: Path, reporter: Reporter
) -> AsyncIterator[Stack]:
    """Start (or attach to) the engine for `model_dir`; leaving stops what was started."""
    harness = get_harness(settings.harness.name)
    harness.installed()
    async with open_engine(settings, model_dir, log_dir=run_dir, reporter=reporter) as engine:
        yield make_stack(engine, settings, model_dir, run_dir=run_dir)


def make_stack(
    engine: Engine,
    settings: Settings,
    model_dir: Path,
    *,
    run_dir: Path,
    audit: str = "audit.jsonl",
    share: Share | None = None,
) -> Stack:
    """All that sessions need besides an engine that is already there.

    `audit` names the log in `run_dir`: stacks that play at once can't share a chain.
    """
    harness = get_harness(settings.harness.name)
    chat = load_chat_format(model_dir, settings.model.trust_remote_code)
    runner = make_runner(engine, chat, harness, settings, run_dir / audit)
    return Stack(engine, chat, harness, runner, share)


@asynccontextmanager
async def open_engine(
    settings: Settings, model_dir: Path, *, log_dir: Path, reporter: Reporter
) -> AsyncIterator[Engine]:
    """Start (or attach to) the engine for `model_dir`; leaving stops what was started."""
    settings = settled(settings)
    if clean_leftovers():
        reporter.say("removed what the sandboxes of killed runs had left behind")
    reporter.phase(f"starting the engine for {model_dir.name}")
    engine = await start_engine(
        settings.engine,
        model_dir,
        dtype=settings.model.dtype,
        trust_remote_code=settings.model.trust_remote_code,
        log_dir=log_dir,
        progress=reporter.say,
    )
    try:
        yield engine
    finally:
        await engine.close()
