"""What only opencode has; what every harness must do is in tests/conformance."""

import json

import pytest

from conformance.playing import native
from gateway.support import call
from harness_adapters.harness import Profile
from harness_adapters.harness.install import install
from harness_adapters.harness.opencode import OpenCode
from harness_adapters.tasks import Shell, WriteFile


@pytest.fixture(scope="module")
def opencode() -> OpenCode:
    install("opencode")
    return OpenCode()


async def test_it_searches_with_the_ripgrep_of_the_install(run, opencode):
    script = [
        call("grep", pattern="need.e"),
        call("glob", pattern="**/*.txt"),
        native(opencode, Shell("command -v rg; ls ~/.cache/opencode/bin")),
        "Done.",
    ]
    files = {"hay/stack.txt": "a\nneedle\n"}
    played = await run(opencode, script, profile=Profile.STOCK, files=files)
    found, globbed, where = played.tool_results
    assert "/app/hay/stack.txt" in found and "Line 2: needle" in found
    assert globbed.strip() == "/app/hay/stack.txt"
    assert where.strip().startswith("/opt/harness/opencode/"), "none was downloaded"


async def test_repeats_are_not_stopped_by_opencode(run, opencode):
    """Its `doom_loop` permission asks after three equal calls; `--auto` answers."""
    again = native(opencode, Shell("echo again >> log.txt"))
    played = await run(opencode, [again] * 5 + ["Done."], profile=Profile.STOCK)
    assert played.end.value == "finished"
    assert played.left == {"log.txt": "again\n" * 5}


async def test_paths_outside_and_secrets_are_not_asked_for(run, opencode):
    """Permissions that are `ask` by default: nobody would answer."""
    script = [
        native(opencode, WriteFile("/tmp/out.txt", "x\n")),
        call("read", filePath="/app/.env"),
        native(opencode, Shell("cat /tmp/out.txt")),
        "Done.",
    ]
    files = {".env": "KEY=1\n"}
    played = await run(opencode, script, profile=Profile.STOCK, files=files)
    written, env, shown = played.tool_results
    assert "Wrote file successfully" in written
    assert "1: KEY=1" in env
    assert shown == "x\n"


async def test_a_session_cant_forge_its_own_exclusion(run, opencode):
    forged = json.dumps({"type": "error", "error": {"name": "APIError"}})
    command = f"echo '{forged}' > /proc/$PPID/fd/1; kill -9 $PPID"
    played = await run(opencode, [native(opencode, Shell(command))])
    assert played.end.scorable
