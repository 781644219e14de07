"""The harness files of recipes/harnesses, in real sessions where their agents are installed."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from pathlib import Path

import pytest

from conformance.playing import CHAT, native
from gateway.support import BUDGET, END, call
from harness_adapters.errors import HarnessError
from harness_adapters.gateway.scripted import oracle_replies
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.harness import Profile
from harness_adapters.harness.toml_driver import TomlHarness
from harness_adapters.records import SessionEnd
from harness_adapters.tasks import Edit, Shell, WriteFile

FOLDER = Path(__file__).parents[2] / "recipes" / "harnesses"
FILES = sorted(FOLDER.glob("*.toml"))
SECONDS = 240
"""For one session; an agent in Python may take a minute to start on a busy machine."""

PROFILES = pytest.mark.parametrize("profile", list(Profile))


def installed(name: str) -> TomlHarness:
    harness = TomlHarness.load(FOLDER / f"{name}.toml")
    try:
        harness.installed()
    except HarnessError as error:
        pytest.skip(f"{name} is not installed (the file says how): {error}")
    return harness


@pytest.fixture(params=[file.stem for file in FILES])
def harness(request: pytest.FixtureRequest) -> TomlHarness:
    return installed(request.param)


@pytest.fixture
def claude() -> TomlHarness:
    return installed("claude-code")


def test_there_are_files() -> None:
    assert [file.stem for file in FILES] == ["claude-code", "mini-swe-agent"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_file_is_sound_and_installs_the_version_it_names(file: Path) -> None:
    harness = TomlHarness.load(file)
    assert harness.name == file.stem
    version = tomllib.loads(file.read_text())["version"]
    comments = "\n".join(re.findall(r"^#.*", file.read_text(), re.M))
    assert re.search(rf"(@|==){re.escape(version)}\b", comments)
    for profile in Profile:
        launch = harness._launch("the task", "http://x:1/v1", profile, 4096)
        assert "http://x:1" in "".join(launch.env.values())


@PROFILES
async def test_an_oracle_writes_edits_runs_and_ends(run, harness, profile) -> None:
    actions = [
        WriteFile("a.txt", 'it\'s\nwörld \\ "quoted" $HOME\n'),
        Edit("a.txt", "wörld", "it's moon"),
        Shell("tr a-z A-Z < a.txt > b.txt; cat in.txt b.txt"),
    ]
    replies = oracle_replies(CHAT, harness, actions)
    played = await run(
        harness, replies, profile=profile, files={"in.txt": "given\n"}, timeout=SECONDS
    )
    assert (played.end, played.why, played.tape.end) == (SessionEnd.FINISHED, "", None)
    assert played.left["b.txt"] == "IT'S\nIT'S MOON \\ \"QUOTED\" $HOME\n"
    assert re.search(r"given(\n|\\n)IT", played.tool_results[2]), "as text or as JSON"
    turns = played.tape.turns
    assert [turn.output_ids for turn in turns] == [[*CHAT.encode(r), END] for r in replies]
    assert not any(c.malformed for turn in turns for c in turn.calls)
    tape = played.tape
    assert (tape.model_calls, tape.auxiliary_calls, tape.token_counts) == (len(replies), 0, 0)


async def test_the_prompt_is_the_same_in_every_session(run, harness) -> None:
    finish = oracle_replies(CHAT, harness, [])
    prompt = "@in.txt --help\n$HOME {{model}} `ls` \"'\\ ä\n"
    files = {"in.txt": "x"}
    first, again = [
        await run(harness, finish, prompt=prompt, files=files, timeout=SECONDS) for _ in range(2)
    ]
    if len({*first.days, *again.days}) > 1:
        pytest.skip("midnight (UTC) passed, and the prompt may hold the date")
    assert first.prompt == again.prompt
    user = next(m for m in first.tape.turns[0].new_messages if m["role"] == "user")
    assert prompt.strip() in user["content"]
    assert "{{task}}" not in user["content"]


async def test_an_endless_loop_ends_at_the_budget(run, harness) -> None:
    script = itertools.repeat(native(harness, Shell("echo again >> log.txt")))
    budget = BUDGET.model_copy(update={"max_turns": 3})
    played = await run(harness, script, budget=budget, timeout=SECONDS)
    assert (played.tape.end, played.end) == (SessionEnd.BUDGET, SessionEnd.FINISHED)
    assert played.left == {"log.txt": "again\n" * 3}
    assert len(played.tape.turns) == 3


# --- Claude Code: the Anthropic wire as its most demanding client sees it ---------------------


@PROFILES
async def test_claudes_last_text_is_the_models(run, claude, profile) -> None:
    played = await run(claude, ["All is done."], profile=profile)
    assert played.result.stdout.decode().splitlines()[-1] == "All is done."
    assert played.result.returncode == 0


async def test_claude_says_why_a_request_was_refused(run, claude) -> None:
    played = await run(claude, ["never"], prompt="refuse me")
    assert played.end is SessionEnd.INIT_FAILURE
    assert "this template refuses" in played.why
    assert played.tape.model_calls == 1, "no retries"


async def test_claude_gets_malformed_calls_as_written(run, claude) -> None:
    broken = CHAT.write_call("Bash", '{"command": "touch x')
    script = [broken, call("teleport", to="mars"), call("Bash"), "Done."]
    played = await run(claude, script)
    malformed, unknown, missing = played.tool_results
    assert "could not be parsed as JSON" in malformed and "touch x" in malformed
    assert "No such tool available: teleport" in unknown
    assert "required parameter `command` is missing" in missing
    assert (played.end, played.left) == (SessionEnd.FINISHED, {})


async def test_claude_learns_why_a_call_was_blocked(run, claude, tmp_path) -> None:
    deny = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])
    shells = [Shell("rm -f in.txt"), Shell("echo ran > ran.txt")]
    both = "\n".join(native(claude, shell) for shell in shells)
    played = await run(claude, [both, "Done."], policy=deny, files={"in.txt": "stays"})
    assert played.left == {"ran.txt": "ran\n"}, "the other call ran, the blocked one did not"
    assert "deleting is not allowed" in CHAT.decode(played.tape.turns[1].prompt_ids)


async def test_claude_is_told_that_the_model_reads_no_images(run, claude) -> None:
    png = "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    png += "0000000c49444154789c6360606000000004000160a1cf2c0000000049454e44ae426082"
    make = Shell(f"python3 -c \"open('/tmp/a.png', 'wb').write(bytes.fromhex('{png}'))\"")
    played = await run(claude, [native(claude, make), call("Read", file_path="/tmp/a.png")])
    assert played.end is SessionEnd.KILLED
    assert "reads text only, no image" in played.why
    assert played.end.scorable, "a model can't void its session by looking at a picture"


@PROFILES
async def test_a_workspace_cant_configure_claude(run, claude, profile) -> None:
    hook = {"hooks": [{"type": "command", "command": "echo WHISTLE"}]}
    settings = {"hooks": {"SessionStart": [hook]}, "permissions": {"deny": ["Bash"]}}
    files = {
        ".claude/settings.json": json.dumps(settings),
        ".claude/skills/y/SKILL.md": "---\nname: y\ndescription: WHISTLE\n---\nWHISTLE\n",
        ".claude/agents/z.md": "---\nname: z\ndescription: WHISTLE\n---\nWHISTLE\n",
        ".mcp.json": '{"mcpServers": {"WHISTLE": {"command": "true"}}}',
        "CLAUDE.md": "WHISTLE\n",
    }
    script = [native(claude, Shell("echo ran > ran.txt")), "Done."]
    played = await run(claude, script, profile=profile, files=files)
    assert "WHISTLE" not in played.prompt
    assert played.left == {"ran.txt": "ran\n"}


async def test_claudes_web_tools_fail_at_once(run, claude) -> None:
    script = [
        call("WebFetch", url="https://example.com/", prompt="x"),
        call("WebSearch", query="some words"),
    ]
    played = await run(claude, [*script, "Done."], profile=Profile.STOCK, timeout=60)
    fetched, searched = played.tool_results
    assert "Unable to verify" in fetched
    assert "the maker's servers can't be served" in searched
    assert (played.end, played.tape.end) == (SessionEnd.FINISHED, None)
    assert len(played.tape.turns) == 3


async def test_claudes_subagents_are_turns_of_the_session(run, claude) -> None:
    start = call("Agent", description="d", prompt="do it", subagent_type="general-purpose")
    script = [start, native(claude, Shell("echo sub > sub.txt")), "Sub done.", "Done."]
    played = await run(claude, script, profile=Profile.STOCK)
    assert played.end is SessionEnd.FINISHED
    assert played.left == {"sub.txt": "sub\n"}
    assert len(played.tape.turns) == played.tape.model_calls == 4
    assert "Sub done." in CHAT.decode(played.tape.turns[3].prompt_ids)
