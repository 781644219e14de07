"""Plays the projects in the real agents, and keeps the agents' own session logs.

    python examples/record.py [NAME …]

The model is a script; agent, tools, sandbox and logs are real. Needs the agents (`harness-adapters
harness install …`) and the embedded model's tokenizer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from projects import ALL, Project, Request

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import ChatFormat
from harness_adapters.engine.embedded import prepare
from harness_adapters.engine.models import load_chat_format
from harness_adapters.gateway import Gateway
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.gateway.tape import SessionSpec
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policy import policy_named
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.sandbox import BwrapSandbox, ExecResult

HERE = Path(__file__).parent
_PORT = 8080
_CONTEXT = 65_536


async def record(project: Project, chat: ChatFormat, place: Path) -> bytes:
    """Play one project; the log of its session, as the agent wrote it."""
    harness = get_harness(project.harness)
    files = place / "files"
    files.mkdir()
    for name, text in project.files.items():
        (files / name).write_text(text)
    engine = ScriptedEngine(chat, max_context=_CONTEXT)
    gateway = Gateway(engine, chat, policy_named("off"), AuditLog(place / "audit.jsonl"))
    first = _launch(harness, project.requests[0], False)
    async with BwrapSandbox([files], "/app", home_files=first.home_files, binds=first.binds) as box:
        for number, request in enumerate(project.requests):
            session = f"{project.name}-{number}"
            engine.script(session, _replies(chat, harness, request))
            tape = gateway.open(_spec(session, harness))
            launch = _launch(harness, request, number > 0)
            result = await box.exec(
                launch.argv,
                env={name: text for name, text in launch.env.items() if name != "OPENCODE_DB"},
                timeout=240,
                stdin=launch.stdin,
                serve=partial(gateway.serve, tape),
                port=_PORT,
            )
            end, why = harness.end(result, model_calls=len(tape.turns))
            if len(tape.turns) != len(request.actions) + 1:
                sys.exit(f"{session}: {len(tape.turns)} turns, {end}: {why}")
        return await _log(box, harness, result)


def _launch(harness: Harness, request: Request, again: bool):  # type: ignore[no-untyped-def]
    """How the agent is started: as in training, but with a session that it keeps."""
    launch = harness.launch(
        request.prompt,
        base_url=f"http://127.0.0.1:{_PORT}/v1",
        profile=Profile.LEAN,
        max_context=_CONTEXT,
    )
    argv = list(launch.argv)
    if harness.name == "pi":
        argv.remove("--no-session")
        argv += ["--session-dir", "/home/agent/sessions", *(["--continue"] if again else [])]
    elif harness.name == "opencode" and again:
        argv.insert(argv.index("run") + 1, "--continue")
    return type(launch)(
        argv=argv,
        env=launch.env,
        stdin=launch.stdin,
        home_files=launch.home_files,
        binds=launch.binds,
    )


async def _log(box: BwrapSandbox, harness: Harness, last: ExecResult) -> bytes:
    """The session's log, out of the sandbox."""
    match harness.name:
        case "pi":
            argv = ["/bin/bash", "-c", "cat /home/agent/sessions/*.jsonl"]
            env: dict[str, str] = {}
        case "opencode":
            first = json.loads(last.stdout.splitlines()[0])
            launch = harness.launch(
                "-", base_url="http://x/v1", profile=Profile.LEAN, max_context=1
            )
            argv = [launch.argv[0], "export", first["sessionID"]]
            env = {name: text for name, text in launch.env.items() if name != "OPENCODE_DB"}
        case _:
            launch = harness.launch(
                "-", base_url="http://x/v1", profile=Profile.LEAN, max_context=1
            )
            program = launch.argv[: list(launch.argv).index("chat")]
            script = '"$@" sessions export "$HOME/log.jsonl" >&2 && cat "$HOME/log.jsonl"'
            argv = ["/bin/bash", "-c", script, "sh", *program]
            env = dict(launch.env)
    found = await box.exec(argv, env=env, timeout=120)
    if found.returncode != 0 or not found.stdout:
        sys.exit(f"{harness.name}: no log: {found.stderr.decode()[-500:]}")
    return found.stdout if harness.name == "opencode" else _without_prompt(found.stdout)


def _without_prompt(log: bytes) -> bytes:
    """A log without the agent's own system prompt and tool descriptions: they aren't ours."""
    rows = [json.loads(line) for line in log.splitlines() if line.strip()]
    for row in rows:
        if "system_prompt" in row:  # hermes: a session in one line
            row["system_prompt"] = ""
            row["messages"] = [one for one in row["messages"] if one.get("role") != "system"]
        elif row.get("message", {}).get("role") == "system":  # pi: a line for each message
            row["message"].pop("toolsAdded", None)
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _replies(chat: ChatFormat, harness: Harness, request: Request) -> list[str]:
    calls = [harness.native_call(action) for action in request.actions]
    texts = [chat.write_call(name, json.dumps(arguments)) for name, arguments in calls]
    return [*texts, request.answer]


def _spec(session: str, harness: Harness) -> SessionSpec:
    return SessionSpec(
        session=session,
        task=session,
        harness=harness.name,
        workdir="/app",
        adapter="base",
        version=0,
        temperature=0.0,
        seed=None,
        budget=BudgetSettings(
            max_turns=40, max_tokens_per_turn=8192, max_session_tokens=60_000, wall_seconds=240
        ),
    )


def main(names: Sequence[str]) -> None:
    """Record all projects, or those named."""
    model = prepare("smollm2")
    chat = load_chat_format(model, False)
    (HERE / "sessions").mkdir(exist_ok=True)
    for project in ALL:
        if names and project.name not in names:
            continue
        with tempfile.TemporaryDirectory() as place:
            log = asyncio.run(record(project, chat, Path(place)))
        suffix = "json" if project.harness == "opencode" else "jsonl"
        (HERE / "sessions" / f"{project.harness}-{project.name}.{suffix}").write_bytes(log)
        print(f"{project.harness} {project.name}: {len(log):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
