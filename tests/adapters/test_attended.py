"""The real agents as `use` starts them for their user, on an endpoint whose model plays a script.

No sandbox is around them, as none is around a user's agent; the script is all that the model says.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from conformance.playing import CHAT, native
from harness_adapters.adapters.endpoint import Endpoint
from harness_adapters.engine import Completion
from harness_adapters.errors import HarnessError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.policy import policy_named
from harness_adapters.harness import Harness, Profile
from harness_adapters.harness.install import install
from harness_adapters.harness.interactive import Attended, attended
from harness_adapters.harness.registry import get_harness
from harness_adapters.proxy.serving import address_of, listening
from harness_adapters.tasks import Shell, WriteFile

WORDS = {
    "pi": ("--mode", "json", "--no-session", "-p", "Make it."),
    "opencode": ("run", "--format", "json", "Make it."),
    "hermes": ("--query=Make it.", "--quiet"),
}
"""What a user says after `--` to get one answer without a terminal."""


class Obliging(ScriptedEngine):
    """Makes one call, and when its result is there, answers."""

    def __init__(self, call: str) -> None:
        super().__init__(CHAT, max_context=1 << 20)
        self._call = call
        self.prompts: list[str] = []

    async def generate(
        self, prompt_ids: list[int], *, session: str = "", **more: Any
    ) -> Completion:
        self.prompts.append(CHAT.decode(prompt_ids))
        done = '"role": "tool"' in self.prompts[-1]
        self.script(session, ["It is made." if done else self._call])
        return await super().generate(prompt_ids, session=session, **more)


@asynccontextmanager
async def endpoint(engine: Obliging, harness: Harness, place: Path) -> AsyncIterator[str]:
    """Where the engine answers, under the guard."""
    work = place / "work"
    work.mkdir()
    serving = Endpoint(
        engine,
        CHAT,
        policy_named("default"),
        AuditLog(place / "audit.jsonl"),
        adapters={"mine": "mine"},
        temperature=0.8,
        harness=harness.name,
        workdir=work,
    )
    with listening("127.0.0.1", 0) as sock:
        stop = await serving.serve(serving.whole(), sock)
        try:
            yield f"{address_of(sock)}/v1"
        finally:
            await stop()


async def run(start: Attended, place: Path) -> tuple[int, str]:
    """Exit code and output of an agent in the directory that its user is in."""
    env = {**os.environ, **start.env, "HOME": str(place / "user")}
    process = await asyncio.create_subprocess_exec(
        *start.argv, env=env, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 280)
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, output.decode(errors="replace")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(WORDS))
async def test_an_agent_works_for_its_user(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(name)
    harness = get_harness(name)
    engine = Obliging(native(harness, WriteFile("made.txt", "by the model\n")))
    async with endpoint(engine, harness, tmp_path) as address:
        monkeypatch.chdir(tmp_path / "work")
        start = attended(
            harness, tmp_path / "config", base_url=address, profile=Profile.LEAN,
            max_context=32_768, more=WORDS[name],
        )  # fmt: skip
        code, output = await run(start, tmp_path)
    assert code == 0, output
    assert (tmp_path / "work" / "made.txt").read_text() == "by the model\n", output
    assert "It is made." in output
    # The lean prompt of the training, and the user's directory in it or beside it.
    assert len(engine.prompts) == 2
    tools = json.loads(engine.prompts[0].removesuffix("\nassistant:"))[0]
    names = {tool["function"]["name"] for tool in tools}
    assert harness.native_call(Shell("true"))[0] in names
    # A line for the call in the guard's log.
    assert "made.txt" in (tmp_path / "audit.jsonl").read_text()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", list(WORDS))
async def test_what_the_guard_blocks_never_reaches_the_agent(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(name)
    harness = get_harness(name)
    engine = Obliging(native(harness, Shell("cat /etc/shadow; touch ran.txt")))
    async with endpoint(engine, harness, tmp_path) as address:
        monkeypatch.chdir(tmp_path / "work")
        start = attended(
            harness, tmp_path / "config", base_url=address, profile=Profile.LEAN,
            max_context=32_768, more=WORDS[name],
        )  # fmt: skip
        _, output = await run(start, tmp_path)
    assert engine.prompts, output
    assert not (tmp_path / "work" / "ran.txt").exists(), output
    assert '"block"' in (tmp_path / "audit.jsonl").read_text()


def test_an_agent_from_a_file_is_pointed_at_serve(tmp_path: Path) -> None:
    recipe = Path(__file__).parents[2] / "recipes" / "harnesses" / "mini-swe-agent.toml"
    with pytest.raises(HarnessError, match=r"no interactive start here: serve the adapter"):
        attended(
            get_harness(str(recipe)), tmp_path, base_url="http://127.0.0.1:1/v1",
            profile=Profile.LEAN, max_context=4096,
        )  # fmt: skip
