"""After a block the model is told within the same request, and the agent runs nothing of it."""

import json
import re

import pytest

from gateway.support import (
    BUDGET,
    END,
    USER,
    CharacterChat,
    Recording,
    ask,
    call,
    client,
    make_gateway,
    spec,
)
from harness_adapters.errors import EngineError
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.learner.rows import turns_to_rows
from harness_adapters.records import Conduct, Decision, SessionEnd, Verdict

DENY_RM = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])
RM, LS = call("bash", command="rm x"), call("bash", command="ls")
NOTICE = "[bash was blocked and not run: deleting is not allowed]"


class ChainChat(CharacterChat):
    """Writes histories as they were sampled, each message with an end of its own."""

    def render(self, messages, tools):
        ids = []
        for message in messages:
            written = [
                self.write_call(c["function"]["name"], c["function"]["arguments"])
                for c in message.get("tool_calls", [])
            ]
            if message["role"] == "tool" and "refuse tools" in messages[0]["content"]:
                raise ValueError("this template knows no tools")
            said = "\n".join([*filter(None, [message["content"]]), *written])
            ids += [*self.encode(f"<{message['role']}>{said}"), END]
        return ids + self.encode("<assistant>")


def chained(tmp_path, replies, *, policy=DENY_RM, **options):
    gateway = make_gateway(tmp_path, {"s1": replies}, policy=policy, **({"retries": 2} | options))
    gateway.chat = ChainChat()
    return gateway


async def test_a_blocked_model_is_told_and_sampled_again(tmp_path):
    gateway = chained(tmp_path, [f"First.\n{RM}", f"Then.\n{LS}"])
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert choice["finish_reason"] == "tool_calls"
    [sent] = choice["message"]["tool_calls"]
    assert (sent["id"], sent["function"]["arguments"]) == ("call_1_0", '{"command": "ls"}')
    assert choice["message"]["content"] == f"First.\n{NOTICE}\nThen."
    first, second = tape.turns
    assert [c.verdict.decision for t in tape.turns for c in t.calls] == ["block", "allow"]
    told = gateway.chat.encode(f"<tool>{NOTICE}")
    assert second.prompt_ids == [
        *first.prompt_ids, *first.output_ids, *told, END, *gateway.chat.encode("<assistant>"),
    ]  # fmt: skip
    assert [m["role"] for m in second.new_messages] == ["assistant", "tool"]
    assert (tape.model_calls, tape.end) == (1, None)
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(x["call"], x["decision"]) for x in lines] == [
        ("call_0_0", "block"),
        ("call_1_0", "allow"),
    ]


@pytest.mark.parametrize("end", [END, None])
async def test_both_turns_are_one_row_and_the_notice_is_context(tmp_path, end):
    """Also when the first turn was cut: its tokens stay, and the template ends it."""
    room = {} if end else {"max_tokens_per_turn": len(RM)}
    gateway = chained(tmp_path, [RM, "ok"])
    tape = gateway.open(spec(budget=BUDGET.model_copy(update=room)))
    async with client(gateway, tape) as http:
        await ask(http, USER)
    assert tape.turns[0].finish == ("stop" if end else "length")
    [row] = turns_to_rows(tape.turns)
    said: dict[bool, str] = {True: "", False: ""}
    for token, trained in zip(row.ids, row.trained, strict=True):
        said[trained] += gateway.chat.decode([token])
    assert said[True] == f"{RM}{'<end>' if end else ''}ok<end>"
    assert NOTICE in said[False]


async def test_a_history_that_is_written_otherwise_opens_a_row(tmp_path):
    """CharacterChat's prompts are JSON: none begins with another. The capture is still exact."""
    gateway = make_gateway(tmp_path, {"s1": [RM, LS]}, policy=DENY_RM, retries=1)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert choice["finish_reason"] == "tool_calls"
    assert NOTICE in gateway.chat.decode(tape.turns[1].prompt_ids)
    assert len(turns_to_rows(tape.turns)) == 2


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_there_are_so_many_retries_and_then_the_notice(tmp_path, retries):
    gateway = chained(tmp_path, [RM] * 9, retries=retries)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert len(tape.turns) == 1 + retries
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "\n".join([NOTICE] * (1 + retries))
    assert "tool_calls" not in choice["message"]


async def test_a_turn_with_a_call_left_goes_to_the_agent(tmp_path):
    gateway = chained(tmp_path, [f"{RM}\n{LS}", "never"])
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert len(tape.turns) == len(choice["message"]["tool_calls"]) == 1


async def test_a_confirmed_cheat_gets_no_retry(tmp_path):
    class Cheat:
        def judge(self, proposed):
            return Verdict(Decision.BLOCK, "r", conduct=Conduct.CHEAT)

    gateway = chained(tmp_path, [LS, LS], policy=Cheat())
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        await ask(http, USER)
    assert len(tape.turns) == 1


async def test_a_template_that_knows_no_tools_gets_no_retry(tmp_path):
    gateway = chained(tmp_path, [RM, LS])
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, {"role": "user", "content": "refuse tools"})
    assert (choice["message"]["content"], len(tape.turns), tape.end) == (NOTICE, 1, None)


@pytest.mark.parametrize(
    ("budget", "failure", "end"),
    [
        ({"max_turns": 1}, RM, SessionEnd.BUDGET),
        ({}, EngineError("the engine is dead"), SessionEnd.API_ERROR),
    ],
)
async def test_a_retry_keeps_to_the_budget_and_ends_with_the_engine(tmp_path, budget, failure, end):
    gateway = chained(tmp_path, [RM, failure])
    tape = gateway.open(spec(budget=BUDGET.model_copy(update=budget)))
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"].startswith(NOTICE)
    assert choice["message"]["content"].endswith("Stopping here.")
    assert (tape.end, len(tape.turns)) == (end, 1)


async def test_a_retry_has_a_random_stream_of_its_own_and_counts_as_output(tmp_path):
    engine = Recording(ChainChat())
    engine.script("s1", [RM, LS])
    gateway = make_gateway(tmp_path, {}, policy=DENY_RM, engine=engine, retries=1)
    gateway.chat = ChainChat()
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        answer = await http.post(
            "/v1/messages",
            json={
                "model": "m",
                "max_tokens": 900,
                "messages": [USER],
                "tools": [{"name": "bash", "input_schema": {"type": "object"}}],
            },
        )
    said = answer.json()
    assert [block["type"] for block in said["content"]] == ["text", "tool_use"]
    assert said["usage"]["output_tokens"] == sum(len(t.output_ids) for t in tape.turns)
    assert said["usage"]["input_tokens"] == len(tape.turns[0].prompt_ids)
    first, second = (sampling.seed for _, sampling, _ in engine.asked)
    assert first != second
