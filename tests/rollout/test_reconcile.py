"""The three records of a session's calls: where they may differ, and where not."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from harness_adapters.guard import ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.harness import AgentCall
from harness_adapters.harness.hermes import Hermes
from harness_adapters.harness.opencode import OpenCode
from harness_adapters.harness.pi import Pi
from harness_adapters.records import Decision, ToolCall, Turn, Verdict
from harness_adapters.rollout.reconcile import disagreement

ALLOW, BLOCK = Verdict(Decision.ALLOW, "r"), Verdict(Decision.BLOCK, "r")
LS = json.dumps({"command": "ls", "timeout": 5})


def called(call_id: str, verdict: Verdict = ALLOW, **changes: object) -> ToolCall:
    return replace(ToolCall(call_id, "bash", LS, verdict), **changes)  # type: ignore[arg-type]


def turn(index: int, *calls: ToolCall) -> Turn:
    return Turn(index, [1], [2], [0.0], "base", 0, "stop", "", list(calls), [], 0.0, 0.0)


def entry(call: ToolCall) -> dict[str, object]:
    return {
        "call": call.id,
        "arguments_sha256": hashlib.sha256(call.arguments.encode()).hexdigest(),
    }


def ran(call: ToolCall, **changes: object) -> AgentCall:
    given = AgentCall(call.id, call.name, json.loads(call.arguments))
    return replace(given, **changes)  # type: ignore[arg-type]


A, B = called("call_0_0"), called("call_1_0", BLOCK)
TURNS = [turn(0, A), turn(1, B), turn(2)]
LOG = [entry(A), entry(B)]


@pytest.mark.parametrize(
    ("log", "record", "said"),
    [
        (LOG, [ran(A)], ""),
        (LOG, None, ""),
        (LOG, [ran(A, arguments='{"timeout": 5, "command": "ls"}')], ""),
        (LOG, [ran(A, name="Bash")], ""),
        (LOG, [ran(A, name="", arguments=None)], ""),
        (LOG[:1], [ran(A)], "the audit log lacks call call_1_0"),
        ([*LOG, entry(A)], [ran(A)], "the audit log has call call_0_0 2 times"),
        ([*LOG, entry(called("x"))], [ran(A)], "the audit log has call x, the session has not"),
        (
            [LOG[0] | {"arguments_sha256": "0"}, LOG[1]],
            [ran(A)],
            "the audit log has other arguments for call call_0_0",
        ),
        (
            LOG,
            [ran(A), ran(A, id="z\x1b[1m")],
            "the agent has a call that was never judged: bash (z\\x1b[1m)",
        ),
        (LOG, [ran(A), ran(B)], "the agent has a call that was blocked: bash (call_1_0)"),
        (
            LOG,
            [ran(A), ran(A)],
            "the agent has a call twice that was judged once: bash (call_0_0)",
        ),
        (LOG, [ran(A, name="write")], "the agent has write (call_0_0) where bash was judged"),
        (
            LOG,
            [ran(A, arguments={"command": "rm"})],
            "the agent has other arguments than were judged: bash (call_0_0)",
        ),
        (LOG, [], "the agent's own record lacks call call_0_0, which it was given"),
    ],
)
def test_each_disagreement_is_named(log, record, said) -> None:
    assert disagreement(TURNS, log, record) == said


def test_what_the_agent_may_not_have_come_to_can_be_missing() -> None:
    assert disagreement([turn(0, A)], [entry(A)], []) == "", "it ended before"
    broken = called("call_0_1", arguments='{"command": "ls', malformed=True)
    turns, log = [turn(0, A, broken), turn(1)], [entry(A), entry(broken)]
    assert disagreement(turns, log, []) == "", "it refused the answer as a whole"
    mended = AgentCall(broken.id, "bash", {"command": "ls"})
    assert disagreement(turns, log, [ran(A), mended]) == "", "the guard judged what it would mend"


def test_a_log_gives_what_a_session_wrote_since(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl", home=tmp_path / "home")
    proposed = ProposedCall("s1", "t", "pi", 0, "bash", LS, "/app")
    log.append(proposed, "before", ALLOW)
    size = log.size()
    log.append(replace(proposed, session="s2"), "another's", ALLOW)
    log.append(proposed, "call_0_0", ALLOW)
    with (tmp_path / "audit.jsonl").open("ab") as file:
        file.write(b'{"session": "s1", "cal')
    assert [one["call"] for one in log.since(size, "s1")] == ["call_0_0"]
    log.close()


def lines(*values: object) -> bytes:
    return b"\n".join(json.dumps(value).encode() for value in values) + b"\nnot JSON\n[1]\n"


def test_each_agents_own_record_is_read_and_never_believed_to_be_whole() -> None:
    started = {"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {}}
    assert Pi().taken_up(lines(started, {"type": "tool_execution_end"})) == [
        AgentCall("c", "bash", {})
    ]
    part = {"tool": "bash", "callID": "c", "state": {"input": {"command": "ls"}}}
    used = {"type": "tool_use", "part": part}
    unread = {"type": "tool_use", "part": part | {"tool": "invalid", "callID": "d", "state": 7}}
    assert OpenCode().taken_up(lines(used, unread, {"type": "tool_use", "part": None})) == [
        AgentCall("c", "bash", {"command": "ls"}),
        AgentCall("d", "", None),
    ]
    call = {"id": "c", "function": {"name": "terminal", "arguments": "{}"}}
    assert Hermes().taken_up(lines(call, {"id": "d", "function": 1})) == [
        AgentCall("c", "terminal", "{}")
    ]
