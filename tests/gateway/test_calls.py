"""Malformed and blocked calls, and a guard that breaks."""

import json
import re

import pytest

from gateway.support import USER, ask, call, client, make_gateway, spec
from harness_adapters.guard.policies import DenyPatterns, DenyRule
from harness_adapters.records import Decision, SessionEnd


async def test_malformed_calls_go_out_as_written_and_are_counted(tmp_path):
    broken = '```json\n{"name": "bash", "arguments": {"command": "ls}\n```'
    nameless = "```json\n{oops\n```"
    gateway = make_gateway(tmp_path, {"s1": [broken, nameless]})
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        first, second = await ask(http, USER), await ask(http, USER)
    function = first["message"]["tool_calls"][0]["function"]
    assert function["name"] == "bash"
    with pytest.raises(json.JSONDecodeError):
        json.loads(function["arguments"])
    assert "tool_calls" not in second["message"]
    assert "oops" in second["message"]["content"]
    assert [c.malformed for turn in tape.turns for c in turn.calls] == [True, True]


DENY_RM = DenyPatterns([DenyRule("no-rm", re.compile(r"\brm\b"), "deleting is not allowed")])


async def test_a_blocked_call_is_replaced_by_a_notice(tmp_path):
    reply = f"Both.\n{call('bash', command='rm x')}\n{call('bash', command='ls')}"
    gateway = make_gateway(tmp_path, {"s1": [reply, call("bash", command="rm y")]}, policy=DENY_RM)
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        mixed, alone = await ask(http, USER), await ask(http, USER)
    sent = [c["function"]["arguments"] for c in mixed["message"]["tool_calls"]]
    assert sent == ['{"command": "ls"}']
    assert "Both." in mixed["message"]["content"]
    assert "deleting is not allowed" in mixed["message"]["content"]
    assert alone["finish_reason"] == "stop"
    assert "tool_calls" not in alone["message"]
    assert [c.verdict.decision for c in tape.turns[0].calls] == [Decision.BLOCK, Decision.ALLOW]
    assert tape.turns[0].text == reply + "<end>", "the sampled tokens stay whole"
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(x["turn"], x["decision"], x["rule"]) for x in lines] == [
        (0, "block", "no-rm"),
        (0, "allow", "no-pattern"),
        (1, "block", "no-rm"),
    ]


async def test_a_policy_that_breaks_allows_nothing(tmp_path):
    class Broken:
        def judge(self, proposed):
            raise KeyError(proposed.name)

    gateway = make_gateway(tmp_path, {"s1": [call("bash", command="ls")]}, policy=Broken())
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert "tool_calls" not in choice["message"]
    assert tape.turns[0].calls[0].verdict.rule == "guard-error"
    assert tape.end is None


async def test_an_audit_log_that_cant_be_written_ends_the_session(tmp_path):
    gateway = make_gateway(tmp_path, {"s1": [call("bash", command="ls")]})
    gateway.audit.close()
    tape = gateway.open(spec())
    async with client(gateway, tape) as http:
        choice = await ask(http, USER)
    assert "tool_calls" not in choice["message"]
    assert tape.end is SessionEnd.API_ERROR
