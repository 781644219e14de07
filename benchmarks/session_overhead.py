"""Wall time of a session through sandbox and gateway against the bare CLI, on one scripted model.

    python benchmarks/session_overhead.py --harness pi --harness opencode --at-once 1 8

Both sides run the same agent with the same configuration on the same replies: one shell command,
then a final text. Bare: the CLI as a plain process, its model a small server that knows the
replies and nothing else. Ours: sandbox set-up, the agent in it, every call through gateway, capture
and guard, the workspace frozen. The two alternate; each round of both gives one ratio, and the
median of these is printed with their range. The bare CLI runs no model's words but the script's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import BASE
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.engine.models import load_chat_format
from harness_adapters.gateway.scripted import FINAL_TEXT, ScriptedEngine, oracle_replies
from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policies import AllowAll
from harness_adapters.harness import HOME, Harness, Launch, Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.rollout.session import BASE_URL, PORT
from harness_adapters.sandbox import BwrapSandbox
from harness_adapters.tasks import Shell

ACTION = Shell("echo 42 > answer.txt")
PROMPT = "Write 42 into answer.txt."
CONTEXT = 1 << 17
SECONDS = 180.0
BUDGET = BudgetSettings(
    max_turns=9, max_tokens_per_turn=1000, max_session_tokens=1 << 17, wall_seconds=SECONDS
)


class BareModel:
    """OpenAI Chat Completions: the call while no tool has answered yet, then the final text."""

    def __init__(self, harness: Harness) -> None:
        self.name, self.arguments = harness.native_call(ACTION)

    async def complete(self, request: Request) -> Response:
        """Answer one request."""
        body = await request.json()
        acted = any(message["role"] == "tool" for message in body["messages"])
        if acted or not body.get("tools"):
            message: dict[str, object] = {"role": "assistant", "content": FINAL_TEXT}
            finish = "stop"
        else:
            function = {"name": self.name, "arguments": json.dumps(self.arguments)}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
            finish = "tool_calls"
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        whole = {"id": "bare", "created": 0, "model": body["model"], "usage": usage}
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return JSONResponse({**whole, "object": "chat.completion", "choices": [choice]})
        kind = {**whole, "object": "chat.completion.chunk"}
        deltas = [(message, None), ({}, finish)]
        chunks = [
            {**kind, "choices": [{"index": 0, "delta": delta, "finish_reason": end}]}
            for delta, end in deltas
        ]
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return StreamingResponse(iter([text]), media_type="text/event-stream")


@asynccontextmanager
async def bare_server(harness: Harness) -> AsyncIterator[str]:
    routes = [Route("/v1/chat/completions", BareModel(harness).complete, methods=["POST"])]
    config = uvicorn.Config(Starlette(routes=routes), log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        await serving


async def bare(harness: Harness, profile: Profile, url: str, cache: Path) -> float:
    """Seconds of one session of the CLI as a plain process.

    Node's code goes into `cache`: the install's own is for sandboxes, which can't write it.
    """
    launch = harness.launch(PROMPT, base_url=url, profile=profile, max_context=CONTEXT)
    with tempfile.TemporaryDirectory(prefix="bare-") as place:
        home, work = Path(place, "home"), Path(place, "work")
        work.mkdir()
        here = _outside(launch, home)
        for path, text in launch.home_files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(here(text))
        env = {name: here(value) for name, value in launch.env.items()}
        if "NODE_COMPILE_CACHE" in env:
            env["NODE_COMPILE_CACHE"] = str(cache)
        start = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *map(here, launch.argv),
            env=env,
            cwd=work,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(launch.stdin), SECONDS)
        seconds = time.perf_counter() - start
        _check(work / "answer.txt", out + err)
    return seconds


def _outside(launch: Launch, home: Path) -> Callable[[str], str]:
    """Rewrites the sandbox's paths to those of this machine."""

    def rewrite(text: str) -> str:
        for bind in launch.binds:
            text = text.replace(bind.target, str(bind.source))
        return text.replace(HOME, str(home))

    return rewrite


def _check(answer: Path, output: bytes) -> None:
    if not answer.is_file() or answer.read_text().strip() != "42":
        raise SystemExit(f"the session did not do its work: {output.decode()[-600:]}")


async def ours(harness: Harness, profile: Profile, gateway: Gateway, script: Script) -> float:
    """Seconds of one session in a sandbox, its set-up and its end included."""
    session = script()
    launch = harness.launch(PROMPT, base_url=BASE_URL, profile=profile, max_context=CONTEXT)
    tape = gateway.open(
        SessionSpec(
            session=session,
            task="overhead",
            harness=harness.name,
            workdir="/app",
            adapter=BASE,
            version=0,
            temperature=0.0,
            seed=None,
            budget=BUDGET,
        )
    )
    start = time.perf_counter()
    async with BwrapSandbox([], "/app", home_files=launch.home_files, binds=launch.binds) as box:
        result = await box.exec(
            launch.argv,
            env=launch.env,
            timeout=SECONDS,
            stdin=launch.stdin,
            serve=partial(gateway.serve, tape),
            port=PORT,
        )
        with box.freeze() as frozen:
            seconds = time.perf_counter() - start
            _check(frozen.layer / "answer.txt", result.stdout + result.stderr)
    return seconds


Script = Callable[[], str]


async def compare(name: str, profile: Profile, at_once: int, rounds: int) -> str:
    """One line of the table."""
    harness = get_harness(name)
    chat = load_chat_format(resolve_model("smollm2", progress=print), False)
    engine = ScriptedEngine(chat, max_context=CONTEXT)
    counter = iter(range(1 << 30))

    def script() -> str:
        session = f"overhead-{next(counter)}"
        engine.script(session, oracle_replies(chat, harness, [ACTION]))
        return session

    plain, boxed, ratios = [], [], []
    with tempfile.TemporaryDirectory() as place:
        audit = AuditLog(Path(place, "audit.jsonl"), home=Path(place, "heads"))
        gateway = Gateway(engine, chat, AllowAll(), audit)
        async with bare_server(harness) as url:
            for number in range(rounds + 1):
                start = time.perf_counter()
                await asyncio.gather(
                    *(bare(harness, profile, url, Path(place, "node")) for _ in range(at_once))
                )
                middle = time.perf_counter()
                await asyncio.gather(
                    *(ours(harness, profile, gateway, script) for _ in range(at_once))
                )
                end = time.perf_counter()
                if number:  # the first round fills file caches
                    plain.append(middle - start)
                    boxed.append(end - middle)
                    ratios.append((end - middle) / (middle - start))
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    return (
        f"| {name} {profile} | {at_once} | {statistics.median(plain):.2f} s "
        f"| {statistics.median(boxed):.2f} s | {statistics.median(ratios):.2f} | {spread} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--harness", action="append")
    parser.add_argument("--profile", default="lean", choices=["stock", "lean"])
    parser.add_argument("--at-once", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, {options.rounds} rounds, medians; a round's sessions end together"
    )
    print("| harness | at once | bare | sandbox + gateway | ratio | range |")
    print("|---|---|---|---|---|---|")
    for name in options.harness or ["pi", "opencode", "hermes"]:
        for at_once in options.at_once:
            line = compare(name, Profile(options.profile), at_once, options.rounds)
            print(asyncio.run(line), flush=True)


if __name__ == "__main__":
    main()
