"""What only hermes does; what every harness must do is in tests/conformance."""

import itertools
import json

import pytest

from conformance.playing import CHAT, native
from gateway.support import BUDGET, call
from harness_adapters.harness import Profile
from harness_adapters.harness.hermes import MOUNT
from harness_adapters.records import SessionEnd
from harness_adapters.tasks import Shell, WriteFile

MANY = BUDGET.model_copy(update={"max_turns": 20})


async def test_a_call_that_stays_malformed_ends_the_session(run, hermes):
    name, arguments = hermes.native_call(WriteFile("a.txt", "x"))
    broken = CHAT.write_call(name, json.dumps(arguments)[:-2])
    played = await run(hermes, itertools.repeat(broken), budget=MANY)
    assert played.end is SessionEnd.FINISHED
    assert played.tape.end is None
    turns = played.tape.turns
    assert len(turns) == 5, "it asks again four times, and tells the model nothing"
    assert len({tuple(turn.prompt_ids) for turn in turns}) == 1
    assert all(c.malformed for turn in turns for c in turn.calls)
    assert played.left == {}


async def test_hermes_mends_names_and_brackets_and_the_record_tells(run, hermes):
    """A guard must judge a malformed call by what hermes makes of it."""
    script = [
        CHAT.write_call("Terminall", '{"command": "echo mended > a.txt"}'),
        CHAT.write_call("terminal", '{"command": "echo closed > b.txt"'),
        "Done.",
    ]
    played = await run(hermes, script)
    assert played.left == {"a.txt": "mended\n", "b.txt": "closed\n"}
    assert [c.malformed for turn in played.tape.turns for c in turn.calls] == [False, True]
    assert [c.name for turn in played.tape.turns for c in turn.calls] == ["Terminall", "terminal"]


async def test_the_agents_shell_is_the_users(run, hermes):
    secret = "sk-abcdefghijklmnopqrstuvwxyz123456"
    commands = [
        f"echo {secret}; python3 -c 'import hermes_cli' 2>&1; sudo -n true 2>&1",
        "cd /tmp; export GREETING=hello",
        "pwd; echo $GREETING",
    ]
    script = [native(hermes, Shell(command)) for command in commands]
    script += [call("search_files", pattern="giv"), "Done."]
    played = await run(hermes, script, files={"in.txt": "given\n"})
    first, _, third, found = played.tool_results
    assert secret in first, "not redacted"
    assert "No module named 'hermes_cli'" in first
    assert "/tmp\\nhello" in third, "its shell keeps its state"
    assert json.loads(found)["total_count"] == 0, "it searches where its shell is"
    assert played.result.seconds < 45, "nobody is asked for a password"


async def test_a_file_is_found_by_its_content(run, hermes):
    script = [call("search_files", pattern="giv"), "Done."]
    played = await run(hermes, script, files={"in.txt": "given\n"})
    assert json.loads(played.tool_results[0])["total_count"] == 1


@pytest.mark.parametrize(
    "prompt",
    ["--help", "-p coder", "/help", "@file:in.txt", "/app/in.txt", "x y\n" * 25_000],
    ids=["flag", "option", "command", "reference", "path", "100 KB"],
)
async def test_a_prompt_is_only_a_prompt(run, hermes, prompt):
    played = await run(hermes, ["Done."], prompt=prompt, files={"in.txt": "x"})
    assert played.tape.turns[0].new_messages[-1]["content"] == prompt.strip()


async def test_nothing_calls_the_model_after_a_long_task(run, hermes):
    script = [native(hermes, Shell(f"echo {number}")) for number in range(12)]
    played = await run(hermes, [*script, "Done."], profile=Profile.STOCK, budget=MANY)
    assert played.end is SessionEnd.FINISHED
    assert played.tape.end is None
    assert (played.tape.model_calls, played.tape.auxiliary_calls) == (13, 0)


async def test_a_question_is_answered_at_once(run, hermes):
    script = [call("clarify", question="Which?", choices=["a", "b"]), "Done."]
    played = await run(hermes, script, profile=Profile.STOCK)
    assert "did not provide a response" in played.tool_results[0]
    assert played.result.seconds < 60


async def test_a_subagent_goes_through_the_gateway_and_has_no_scripts(run, hermes):
    delegate = call("delegate_task", goal="Say hi.", context="none")
    # It works beside its parent, whose end is its own: both have to do for a while.
    work = native(hermes, Shell("sleep 2; echo worked >> who.txt"))
    script = [delegate, work, work, *["Done."] * 5]
    played = await run(hermes, script, profile=Profile.STOCK, budget=MANY)
    assert played.end is SessionEnd.FINISHED
    asked = [turn.prompt_ids for turn in played.tape.turns]
    tools = [json.loads(CHAT.decode(ids).removesuffix("\nassistant:"))[0] for ids in asked]
    names = [{tool["function"]["name"] for tool in given} for given in tools]
    assert any("delegate_task" not in given for given in names), "a subagent's own turns"
    assert not any("execute_code" in given for given in names)


async def test_a_session_cant_forge_its_own_exclusion(run, hermes):
    command = "echo 'session_id: forged' > /proc/$PPID/fd/2; kill -9 $PPID"
    played = await run(hermes, [native(hermes, Shell(command))])
    assert played.end.scorable


async def test_a_session_finds_ripgrep_but_not_hermess_python(run, hermes):
    command = "command -v rg python3"
    played = await run(hermes, [native(hermes, Shell(command)), "Done."])
    assert f"{MOUNT}/programs/rg\\n/usr/bin/python3" in played.tool_results[0]
