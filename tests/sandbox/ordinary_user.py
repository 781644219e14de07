"""One whole session, run by `test_ordinary_user.py` under an unprivileged uid."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from harness_adapters.sandbox import BwrapSandbox, Limits, check_machine, isolation, verify

SCRIPT = """
id -u; rm old; echo new > new
touch kept; python3 -c 'import os; os.setxattr("kept", "user.note", b"y")'; chmod 400 kept
exec 3<>/dev/tcp/127.0.0.1/8080; echo hello >&3; cat <&3
for i in $(seq 100); do sleep 30 & done
"""


async def session(place: Path) -> dict[str, object]:
    lower, tests = place / "lower", place / "tests"
    lower.mkdir()
    tests.mkdir()
    (lower / "old").write_text("old")
    (tests / "test.sh").write_text("[ ! -e old ] && cat new && echo 1 > /logs/verifier/reward.txt")

    async def serve(listener: object) -> Callable[[], Awaitable[None]]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"heard " + await reader.readline())
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, sock=listener)  # type: ignore[arg-type]

        async def stop() -> None:
            server.close()

        return stop

    async with BwrapSandbox([lower], limits=Limits(processes=32)) as box:
        result = await box.exec(["/bin/bash", "-c", SCRIPT], env={}, timeout=2, serve=serve)
        frozen = box.freeze()
    kept = frozen.layer / "kept"
    attributes = {"kept": [oct(kept.stat().st_mode), os.listxattr(kept)]}
    with frozen:
        verdict = await verify(frozen, lowers=[lower], tests=tests, timeout=20)
    return {
        **attributes,
        "uid": os.getuid(),
        "problems": [str(problem) for problem in check_machine()],
        "process_limit": isolation().process_limit,
        "stdout": result.stdout.decode(),
        "stderr": result.stderr.decode(),
        "score": verdict.score,
        "left": [entry.name for entry in isolation().scratch.iterdir()],
    }


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(asyncio.run(session(Path(name)))))
