"""Sessions of the real agents to measure the learner on: a script plays the model.

    python benchmarks/recorded_sessions.py --harness opencode --out sessions.json

Prompts, tool schemas and tool results are the agent's own, captured by the gateway as in training;
token ids are those of the embedded model's tokenizer. What the script says is made up: shell
commands, different in every session, and an answer. Log-probabilities are a constant. The log of
the sandbox stays nowhere; the file holds token ids only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from functools import partial
from pathlib import Path

from harness_adapters.config import BudgetSettings
from harness_adapters.engine import BASE
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.engine.models import load_chat_format
from harness_adapters.gateway.scripted import ScriptedEngine, oracle_replies
from harness_adapters.gateway.server import Gateway
from harness_adapters.gateway.tape import SessionSpec
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policies import AllowAll
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.registry import get_harness
from harness_adapters.records import Turn
from harness_adapters.rollout.session import BASE_URL, PORT
from harness_adapters.sandbox import BwrapSandbox
from harness_adapters.tasks import Shell

CONTEXT = 1 << 17
SECONDS = 600.0
BUDGET = BudgetSettings(
    max_turns=40, max_tokens_per_turn=1000, max_session_tokens=1 << 17, wall_seconds=SECONDS
)
LOGPROB = -3.0


def actions(rng: random.Random, count: int) -> list[Shell]:
    """Commands that write and show something else each time."""
    made = []
    for number in range(count):
        a, b = rng.randrange(10, 99), rng.randrange(100, 999)
        made.append(
            Shell(
                rng.choice(
                    [
                        f"seq {a} {a + 9} | tee part-{number}.txt | tail -n 5",
                        f"echo {a} {b} >> notes.txt && cat notes.txt",
                        f"printf 'name,value\\nx,{a}\\ny,{b}\\n' > table-{a}.csv && ls",
                    ]
                )
            )
        )
    return made


async def record(
    name: str, profile: str, *, tasks: int, attempts: int, turns: int, at_once: int
) -> list[list[Turn]]:
    """`tasks` x `attempts` sessions of `turns` turns, the last of which is the answer."""
    harness = get_harness(name)
    harness.installed()
    chat = load_chat_format(resolve_model("smollm2", progress=print), False)
    engine = ScriptedEngine(chat, max_context=CONTEXT)
    slots = asyncio.Semaphore(at_once)
    with tempfile.TemporaryDirectory() as place:
        audit = AuditLog(Path(place, "audit.jsonl"), home=Path(place, "heads"))
        gateway = Gateway(engine, chat, AllowAll(), audit)

        async def one(task: int, attempt: int) -> list[Turn]:
            session = f"{name}-{task}-{attempt}"
            script = actions(random.Random(session), turns - 1)
            engine.script(session, oracle_replies(chat, harness, script))
            async with slots:
                return await play(harness, Profile(profile), gateway, session, task)

        pairs = [(task, attempt) for task in range(tasks) for attempt in range(attempts)]
        return await asyncio.gather(*(one(*pair) for pair in pairs))


async def play(
    harness: Harness, profile: Profile, gateway: Gateway, session: str, task: int
) -> list[Turn]:
    """One session in a sandbox; its turns."""
    rng = random.Random(task)
    prompt = (
        f"Collect the readings of station {rng.randrange(1000)} in files of this folder, one file"
        f" per hour from {rng.randrange(12)} to {rng.randrange(12, 24)}, and say when it is done."
    )
    launch = harness.launch(prompt, base_url=BASE_URL, profile=profile, max_context=CONTEXT)
    tape = gateway.open(
        SessionSpec(
            session=session,
            task=str(task),
            harness=harness.name,
            workdir="/app",
            adapter=BASE,
            version=0,
            temperature=1.0,
            budget=BUDGET,
        )
    )
    async with BwrapSandbox([], "/app", home_files=launch.home_files, binds=launch.binds) as box:
        await box.exec(
            launch.argv,
            env=launch.env,
            timeout=SECONDS,
            stdin=launch.stdin,
            serve=partial(gateway.serve, tape),
            port=PORT,
        )
    if not tape.turns:
        raise SystemExit(f"{session}: the agent made no call; {tape.error}")
    return tape.turns


def load(path: Path) -> tuple[str, list[list[Turn]]]:
    """Label and sessions of a file that `main` wrote."""
    saved = json.loads(path.read_text())
    sessions = [
        [
            Turn(i, prompt, output, [LOGPROB] * len(output), BASE, 0, "stop", "", [], [], 0, 0)
            for i, (prompt, output) in enumerate(session)
        ]
        for session in saved["sessions"]
    ]
    return str(saved["label"]), sessions


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--harness", default="opencode")
    parser.add_argument("--profile", default="lean", choices=["stock", "lean"])
    parser.add_argument("--tasks", type=int, default=4)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    sessions = asyncio.run(
        record(
            options.harness,
            options.profile,
            tasks=options.tasks,
            attempts=options.attempts,
            turns=options.turns,
            at_once=options.at_once,
        )
    )
    label = f"{options.harness} {options.profile}"
    pairs = [[[turn.prompt_ids, turn.output_ids] for turn in turns] for turns in sessions]
    options.out.write_text(json.dumps({"label": label, "sessions": pairs}))
    lengths = sorted(len(turns[-1].prompt_ids) + len(turns[-1].output_ids) for turns in sessions)
    print(f"{label}: {len(sessions)} sessions, {sum(map(len, sessions))} turns,", end=" ")
    print(f"{lengths[0]:,} to {lengths[-1]:,} tokens -> {options.out}")


if __name__ == "__main__":
    main()
