"""Every harness behaves: the real program, in a real sandbox, on a scripted model.

The same cases for all. What a harness words in its own way stands in manners.py.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import secrets
import uuid
from pathlib import Path

import pytest

from conformance.conftest import PROMPT
from conformance.manners import MANNERS
from conformance.playing import CHAT, living, native, play
from conformance.upstream import STALL, Upstream, engine_on
from gateway.support import BUDGET, END, call, make_gateway
from harness_adapters.gateway.scripted import oracle_replies
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.harness import Profile
from harness_adapters.harness.registry import known_harnesses
from harness_adapters.records import SessionEnd
from harness_adapters.tasks import Edit, Shell, WriteFile

pytestmark = pytest.mark.conformance

PROFILES = pytest.mark.parametrize("profile", list(Profile))


def test_every_known_harness_takes_part():
    assert sorted(MANNERS) == known_harnesses()


def test_every_case_stands_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "harnesses.md").read_text()
    heading, _, rest = page.partition("\n| case ")[2].partition("\n")
    assert all(f" {name} " in heading for name in MANNERS)
    table = rest.partition("\n\n")[0]
    cases = {name for name in globals() if name.startswith("test_")}
    cases -= {name for name in cases if name.startswith("test_every_")}
    assert {f"test_{name}" for name in re.findall(r"^\| `(\w+)`", table, re.MULTILINE)} == cases


# --- what the model is sent -----------------------------------------------------------------


@PROFILES
def test_the_prompt_arrives_as_it_is(openings, profile):
    messages = openings[profile].tape.turns[0].new_messages
    assert [message["role"] for message in messages] == ["system", "user"]
    assert messages[-1]["content"].strip() == PROMPT.strip()


@PROFILES
def test_the_tools_are_those_of_the_profile(openings, manners, profile):
    assert openings[profile].tools == manners.tools[profile]


def test_lean_is_shorter_than_stock(openings, manners):
    lean, stock = (len(openings[p].tape.turns[0].prompt_ids) for p in (Profile.LEAN, Profile.STOCK))
    assert lean < stock * manners.lean_share


@PROFILES
def test_there_are_no_auxiliary_calls(openings, profile):
    assert openings[profile].tape.auxiliary_calls == 0
    assert openings[profile].tape.model_calls == 1
    assert openings[profile].left == {}


@PROFILES
async def test_the_prompt_is_the_same_in_every_session(run, openings, profile):
    again = await run(["Done."], prompt=PROMPT, profile=profile, files={"other.txt": "y"})
    if len({*again.days, *openings[profile].days}) > 1:
        pytest.skip("midnight (UTC) passed, and some prompts hold the date")
    assert again.prompt == openings[profile].prompt


@PROFILES
async def test_a_workspace_cant_configure_it(run, manners, profile):
    files = {**manners.own_settings, "AGENTS.md": "Always sing.\n"}
    played = await run(["Done."], profile=profile, files=files)
    assert played.end is SessionEnd.FINISHED
    assert "WHISTLE" not in played.prompt
    assert played.tools == manners.tools[profile]
    assert ("Always sing." in played.prompt) is (profile in manners.reads_agents_md)


# --- what the model does --------------------------------------------------------------------


@PROFILES
async def test_an_oracle_writes_edits_and_runs(run, harness, profile):
    actions = [
        WriteFile("a.txt", 'hello\nwörld \\ "quoted"\n'),
        Edit("a.txt", "wörld", "moon"),
        Shell("tr a-z A-Z < a.txt > b.txt; cat in.txt b.txt"),
    ]
    replies = oracle_replies(CHAT, harness, actions)
    played = await run(replies, profile=profile, files={"in.txt": "given\n"})
    assert (played.end, played.why) == (SessionEnd.FINISHED, "")
    assert played.tape.end is None
    assert played.left["b.txt"] == 'HELLO\nMOON \\ "QUOTED"\n'
    assert re.search(r"given(\n|\\n)HELLO", played.tool_results[-1]), "as text or as JSON"
    turns = played.tape.turns
    assert [turn.text for turn in turns] == [f"{reply}<end>" for reply in replies]
    assert [turn.output_ids for turn in turns] == [[*CHAT.encode(r), END] for r in replies]
    named = [harness.native_call(action)[0] for action in actions]
    assert [c.name for turn in turns for c in turn.calls] == named
    assert not any(c.malformed for turn in turns for c in turn.calls)


async def test_malformed_json_comes_back_as_a_tool_error(run, harness, manners):
    name, arguments = harness.native_call(WriteFile("a.txt", "x"))
    broken = CHAT.write_call(name, json.dumps(arguments)[:-2])
    mended = native(harness, Shell("echo ok > ok.txt"))
    played = await run([*[broken] * manners.malformed_requests, mended, "Done."])
    assert played.end is SessionEnd.FINISHED
    calls = [c for turn in played.tape.turns for c in turn.calls]
    assert [c.malformed for c in calls] == [True] * manners.malformed_requests + [False]
    assert manners.malformed in played.tool_results[0]
    assert played.left == {"ok.txt": "ok\n"}


async def test_an_unknown_tool_comes_back_as_a_tool_error(run, manners):
    played = await run([call("teleport", to="mars"), "Done."])
    assert played.end is SessionEnd.FINISHED
    assert manners.unknown in played.tool_results[0]


async def test_a_missing_argument_comes_back_as_a_tool_error(run, harness, manners):
    name, arguments = harness.native_call(WriteFile("a.txt", "x"))
    (lacking,) = (key for key, value in arguments.items() if value == "x")
    del arguments[lacking]
    played = await run([call(name, **arguments), "Done."])
    assert played.end is SessionEnd.FINISHED
    assert manners.missing in played.tool_results[0]
    assert played.left == {}


async def test_an_empty_reply_ends_the_session(run, manners):
    played = await run(itertools.repeat(""))
    assert played.end is SessionEnd.FINISHED
    assert [turn.output_ids for turn in played.tape.turns] == [[END]] * manners.empty_requests


async def test_calls_written_as_text_are_text(run, harness):
    name, arguments = harness.native_call(Shell("echo ran > ran.txt"))
    bare = json.dumps({"name": name, "arguments": arguments})
    played = await run([f"I would call {bare}\n```json\n{{oops\n```", "never"])
    assert played.end is SessionEnd.FINISHED
    assert len(played.tape.turns) == 1
    assert [c.malformed for c in played.tape.turns[0].calls] == [True]
    assert played.left == {}


async def test_a_cut_answer_ends_the_session(run):
    budget = BUDGET.model_copy(update={"max_tokens_per_turn": 20})
    played = await run(["word " * 50], budget=budget)
    assert played.end is SessionEnd.FINISHED
    assert played.tape.turns[0].finish == "length"
    assert len(played.tape.turns[0].output_ids) == 20


async def test_a_blocked_call_is_not_run_and_the_model_learns_why(run, harness):
    deny = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])
    shells = [Shell("rm -f in.txt"), Shell("echo ran > ran.txt")]
    both = "\n".join(native(harness, shell) for shell in shells)
    played = await run([both, "Done."], policy=deny, files={"in.txt": "stays"})
    assert played.end is SessionEnd.FINISHED
    assert played.left == {"ran.txt": "ran\n"}, "the other call ran, the blocked one did not"
    assert len(played.tape.turns) == 2
    assert "deleting is not allowed" in CHAT.decode(played.tape.turns[1].prompt_ids)
    assert len(played.tool_results) == 1


async def test_a_session_cant_change_the_harness_for_others(run, harness):
    launch = harness.launch("p", base_url="http://x/v1", profile=Profile.LEAN, max_context=4096)
    targets = " ".join(bind.target for bind in launch.binds)
    look = Shell(f"for place in {targets}; do touch $place/x 2>&1; done")
    played = await run([native(harness, look), "Done."])
    assert played.tool_results[0].count("Read-only file system") == len(launch.binds) > 0


# --- how a session ends ---------------------------------------------------------------------


async def test_an_endless_loop_ends_at_the_budget(run, harness):
    budget = BUDGET.model_copy(update={"max_turns": 3})
    script = itertools.repeat(native(harness, Shell("echo again >> log.txt")))
    played = await run(script, budget=budget)
    assert played.tape.end is SessionEnd.BUDGET
    assert played.end is SessionEnd.FINISHED, "it takes the gateway's text as an answer"
    assert (len(played.tape.turns), played.tape.model_calls) == (3, 4)
    assert played.left == {"log.txt": "again\n" * 3}


@pytest.mark.parametrize(
    ("failure", "end"),
    [
        ((500, "the engine is dead"), SessionEnd.API_ERROR),
        ((429, "too many requests"), SessionEnd.API_ERROR),
        ((400, "maximum context length is 8 tokens"), SessionEnd.CONTEXT),
    ],
    ids=["500", "429", "context"],
)
async def test_a_failing_model_server_ends_the_session_at_once(run, harness, failure, end):
    upstream = Upstream([native(harness, Shell("true")), failure])
    async with engine_on(upstream) as engine:
        played = await run(None, engine=engine, adapter="base")
    assert played.tape.end is end
    assert end is SessionEnd.CONTEXT or failure[1] in played.tape.error
    assert (upstream.requests, played.tape.model_calls) == (2, 2), "no retries"
    assert played.end is SessionEnd.FINISHED


async def test_a_stalled_model_server_is_ended_by_the_clock(run, harness, manners):
    for timeout in (manners.seconds_to_call * times for times in (1, 3, 8)):
        upstream = Upstream([STALL])
        async with engine_on(upstream) as engine:
            played = await run(None, engine=engine, adapter="base", timeout=timeout)
        assert played.end is SessionEnd.KILLED
        assert played.tape.turns == []
        if upstream.requests:  # else the machine was too busy to come that far
            break
    assert (upstream.requests, upstream.cancelled) == (1, 1)


async def test_a_refused_request_ends_quickly_and_says_why(run):
    played = await run(["never"], prompt="refuse me")
    assert played.tape.end is None
    assert played.end is SessionEnd.NO_CALL
    assert "this template refuses" in played.why
    assert played.tape.model_calls == 1, "no retries"


async def test_a_kill_leaves_nothing_alive(run, harness, manners):
    # Two processes, one of them in a session of its own; some harnesses refuse a command with `&`.
    sleep = "import os, time; os.fork() or os.setsid(); time.sleep(86400)"
    hang = Shell(f"echo begun > begun.txt; python3 -c '{sleep}'; true")
    for timeout in (manners.seconds_to_call * times for times in (1, 3, 8)):
        mark, seen = uuid.uuid4().hex, 0
        session = asyncio.create_task(run([native(harness, hang)], timeout=timeout, mark=mark))
        while not session.done():
            seen = max(seen, len(living(mark)))
            await asyncio.sleep(0.2)
        played = session.result()
        assert played.end is SessionEnd.KILLED
        assert living(mark) == []
        if played.left:  # else the machine was too busy to come that far
            break
    assert played.left == {"begun.txt": "begun\n"}
    assert len(played.tape.turns) == 1
    assert seen >= 4, "the harness, its shell and both sleepers were there to be seen"


async def test_a_session_cant_void_itself(run, harness):
    """A losing model must not get its session out of the statistics by killing its harness."""
    played = await run([native(harness, Shell("kill -9 $PPID; sleep 1")), "Done."])
    assert played.end.scorable


async def test_eight_sessions_at_once_stay_apart(harness, tmp_path):
    gateway = make_gateway(tmp_path, {})
    names = [f"s{number}" for number in range(8)]
    replies = {}
    for name in names:
        secret = secrets.token_hex(8)
        actions = [WriteFile(f"{name}.txt", secret), Shell(f"ls; sleep .3; cat {name}.txt")]
        replies[name] = oracle_replies(CHAT, harness, actions)
        gateway.engine.script(name, replies[name])
    sessions = (play(harness, gateway, tmp_path, session=name, timeout=240) for name in names)
    for name, played in zip(names, await asyncio.gather(*sessions), strict=True):
        assert played.tape.spec.session == name
        assert played.end is SessionEnd.FINISHED
        assert list(played.left) == [f"{name}.txt"]
        assert played.left[f"{name}.txt"] in played.tool_results[-1]
        said = [turn.text for turn in played.tape.turns]
        assert said == [f"{reply}<end>" for reply in replies[name]]
