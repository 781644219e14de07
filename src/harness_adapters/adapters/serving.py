"""An adapter in its user's hands: engine, guard and endpoint, and their own agent on it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_adapters import config
from harness_adapters.adapters.endpoint import Endpoint
from harness_adapters.adapters.source import Adapter
from harness_adapters.config import Settings
from harness_adapters.engine.models import load_chat_format
from harness_adapters.errors import ModelError
from harness_adapters.evaluation.execute import Arm, mounted
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policy import policy_named
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.interactive import attended
from harness_adapters.paths import data_dir
from harness_adapters.progress import Reporter
from harness_adapters.proxy.serving import address_of, listening
from harness_adapters.rollout.stack import open_engine


@dataclass(frozen=True, slots=True)
class Served:
    """A running endpoint."""

    address: str
    """`http://host:port/v1`."""
    models: list[str]
    """Names that it answers to, the default first."""
    max_context: int


def serving_settings(adapters: Sequence[Adapter], changes: Sequence[str]) -> Settings:
    """Settings of the first adapter's training, overlaid; the engine holds all adapters."""
    origin = next((a.origin for a in adapters if a.origin is not None), None)
    settings = config.load(None, list(changes), begin=origin.settings if origin else None)
    engine = settings.engine
    ranks = [adapter.rank for adapter in adapters]
    larger = {
        "max_loras": max(engine.max_loras, len(adapters)),
        "max_lora_rank": max(engine.max_lora_rank, *ranks) if ranks else engine.max_lora_rank,
    }
    return settings.model_copy(update={"engine": engine.model_copy(update=larger)})


def base_of(adapters: Sequence[Adapter], say: Callable[[str], None]) -> Path:
    """The weights that all adapters fit. Raises ModelError where they differ."""
    bases = [adapter.base(say).resolve() for adapter in adapters]
    for adapter, base in zip(adapters, bases, strict=True):
        if base != bases[0]:
            raise ModelError(
                f"{adapter.path} fits {base}, {adapters[0].path} fits {bases[0]}: one server has "
                "one base; serve them apart"
            )
    return bases[0]


@asynccontextmanager
async def serving(
    adapters: Sequence[Adapter],
    base: Path,
    settings: Settings,
    reporter: Reporter,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    policy: str = "default",
    harness: str = "",
) -> AsyncIterator[Served]:
    """Start engine and endpoint; leaving stops them. The guard judges by `policy`."""
    home = data_dir() / "serve"
    home.mkdir(parents=True, exist_ok=True)
    arms = [Arm(a.label, a.name, 1, a.path) for a in adapters]
    with listening(host, port) as sock:
        async with (
            open_engine(settings, base, log_dir=home, reporter=reporter) as engine,
            mounted(engine, arms),
        ):
            endpoint = Endpoint(
                engine,
                load_chat_format(base, settings.model.trust_remote_code),
                policy_named(policy),
                AuditLog(home / f"audit-{os.getpid()}.jsonl"),
                adapters={arm.label: arm.adapter for arm in arms},
                temperature=settings.eval.temperature,
                harness=harness,
            )
            address = f"{address_of(sock)}/v1"
            stop = await endpoint.serve(endpoint.whole(), sock)
            try:
                yield Served(address, [*(arm.label for arm in arms), "base"], engine.max_context)
            finally:
                await stop()


async def use(
    harness: Harness,
    adapter: Adapter,
    base: Path,
    settings: Settings,
    reporter: Reporter,
    *,
    policy: str = "default",
    more: Sequence[str] = (),
) -> int:
    """The user's agent on the adapter, in the directory they are in; its exit code."""
    home = data_dir() / "use" / harness.name
    home.mkdir(parents=True, exist_ok=True)
    async with serving(
        [adapter], base, settings, reporter, policy=policy, harness=harness.name
    ) as served:
        start = attended(
            harness,
            home,
            base_url=served.address,
            profile=Profile(settings.harness.profile),
            max_context=served.max_context,
            more=more,
        )
        reporter.say(f"{harness.name} {harness.version} on {adapter.label}; guard: {policy}")
        return await _attend(start.argv, {**os.environ, **start.env})


async def _attend(argv: Sequence[str], env: dict[str, str]) -> int:
    """Run on this terminal. Ctrl-C is the agent's own there: it must not end what it talks to."""
    loop = asyncio.get_running_loop()
    process = await asyncio.create_subprocess_exec(*argv, env=env)
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        return await process.wait()
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        if process.returncode is None:
            process.terminate()
            await process.wait()
