"""One session of a real harness in a real sandbox, on a model that plays a script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any

from gateway.support import CharacterChat, spec
from harness_adapters.gateway import Gateway, Tape
from harness_adapters.harness import Harness, Profile
from harness_adapters.records import SessionEnd
from harness_adapters.rollout.reconcile import disagreement
from harness_adapters.sandbox import BwrapSandbox, ExecResult
from harness_adapters.tasks import Action

CHAT = CharacterChat()


@dataclass(frozen=True, slots=True)
class Played:
    """What one session left."""

    tape: Tape
    end: SessionEnd
    """As the driver reads it from the harness's output."""
    why: str
    left: dict[str, str]
    """What was written into the working directory, by path."""
    result: ExecResult
    disagreement: str
    """Between its calls, the audit log and the agent's own record."""
    days: tuple[date, date]
    """Before and after, in UTC: some prompts hold the date."""

    @property
    def tool_results(self) -> list[str]:
        """What the model was told after each of its turns but the last."""
        return [
            message["content"]
            for turn in self.tape.turns[1:]
            for message in turn.new_messages
            if message["role"] == "tool"
        ]

    @property
    def prompt(self) -> str:
        """The first request as text: tools and messages."""
        return CHAT.decode(self.tape.turns[0].prompt_ids)

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the first request's tools."""
        tools, _ = json.loads(self.prompt.removesuffix("\nassistant:"))
        return tuple(tool["function"]["name"] for tool in tools)


async def play(
    harness: Harness,
    gateway: Gateway,
    place: Path,
    *,
    session: str = "s1",
    prompt: str = "Do it.",
    profile: Profile = Profile.LEAN,
    files: Mapping[str, str] | None = None,
    timeout: float = 120,
    mark: str = "",
    **changes: Any,
) -> Played:
    """Play `session`, whose script the gateway's engine has; `place` is a directory for files.

    All processes of the session have `mark` in their environment. `changes` are fields of the
    session's `SessionSpec`.
    """
    lower = place / f"files-{session}"
    lower.mkdir(parents=True, exist_ok=True)
    for name, text in (files or {}).items():
        (lower / name).parent.mkdir(parents=True, exist_ok=True)
        (lower / name).write_text(text)
    began = datetime.now(UTC).date()
    logged = gateway.audit.size()
    tape = gateway.open(spec(session, harness=harness.name, **changes))
    launch = harness.launch(
        prompt, base_url="http://127.0.0.1:8080/v1", profile=profile, max_context=4096
    )
    async with BwrapSandbox(
        [lower], "/app", home_files=launch.home_files, binds=launch.binds
    ) as box:
        result = await box.exec(
            launch.argv,
            env={**launch.env, **({"SESSION_MARK": mark} if mark else {})},
            timeout=timeout,
            stdin=launch.stdin,
            serve=partial(gateway.serve, tape),
        )
        command = harness.record_command()
        record = await box.exec(command, env={}, timeout=60) if command else result
        with box.freeze() as frozen:
            layer = Path(frozen.layer)
            left = {
                str(path.relative_to(layer)): path.read_text()
                for path in sorted(layer.rglob("*"))
                if path.is_file()
            }
    end, why = harness.end(result, model_calls=len(tape.turns))
    entries = gateway.audit.since(logged, session)
    ran = None if result.timed_out else harness.taken_up(record.stdout)
    differs = disagreement(tape.turns, entries, ran)
    return Played(tape, end, why, left, result, differs, (began, datetime.now(UTC).date()))


def native(harness: Harness, action: Action) -> str:
    """`action` as the model writes it: a call of the harness's own tool."""
    name, arguments = harness.native_call(action)
    return CHAT.write_call(name, json.dumps(arguments, ensure_ascii=False))


def living(mark: str) -> list[int]:
    """Processes of this machine that have `mark` in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"SESSION_MARK={mark}".encode() in (path / "environ").read_bytes():
                found.append(int(path.name))
        except OSError:
            continue  # it has just ended
    return found
