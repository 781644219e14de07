"""Shapes that other versions and other modes of the agents write."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from harness_adapters.synthesis.traces.reading import count_file, read_file
from harness_adapters.synthesis.traces.session import Session

from .samples import TEST


def read(tmp_path: Path, *records: Any) -> tuple[str | None, tuple[int, ...], Session]:
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    report = count_file(path)
    assert report.error is None
    sessions = list(read_file(path))
    return report.format, dataclasses.astuple(report.counts), sessions[0]


def test_claude_code_stream_json(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": TEST}}
    done = {"type": "tool_result", "tool_use_id": "t1", "content": "OK"}
    found = read(
        tmp_path,
        {"type": "system", "subtype": "init", "session_id": "s1", "cwd": "/repo", "model": "m"},
        {
            "type": "assistant",
            "session_id": "s1",
            "parent_tool_use_id": None,
            "message": {"id": "m1", "role": "assistant", "model": "m", "content": [use]},
        },
        {"type": "user", "session_id": "s1", "message": {"role": "user", "content": [done]}},
        {"type": "result", "subtype": "success", "session_id": "s1", "result": "ok"},
    )
    assert found[:2] == ("claude_code", (1, 1, 1, 1, 1, 0, 0))
    assert found[2].cwd == "/repo"


def test_claude_code_background_commands_and_interruptions(tmp_path: Path) -> None:
    def pair(number: int, details: Any, text: str = "", error: bool = False) -> list[Any]:
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": "x"}}
        done = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
        message = {"id": f"m{number}", "role": "assistant", "model": "m", "content": [use]}
        answer = {"role": "user", "content": [{**done, "is_error": error}]}
        base = {"sessionId": "s1", "version": "2.1.0"}
        return [
            {**base, "type": "assistant", "uuid": f"a{number}", "message": message},
            {
                **base,
                "type": "user",
                "uuid": f"b{number}",
                "message": answer,
                "toolUseResult": details,
            },
        ]

    _, counts, session = read(
        tmp_path,
        *pair(1, {"stdout": "", "interrupted": False, "backgroundTaskId": "1"}),
        *pair(2, {"stdout": "", "interrupted": True}),
        *pair(3, {"stdout": "", "interrupted": False, "returnCodeInterpretation": "No matches"}),
        *pair(4, "Error: Exit code 2\nx", "Exit code 2\nx", True),
        *pair(5, "Error: rejected", "The user doesn't want to proceed", True),
    )
    assert counts == (1, 5, 5, 5, 2, 0, 0)
    assert [call.exit_code for call in session.calls()] == [None, None, 1, 2, None]


def test_codex_before_envelopes(tmp_path: Path) -> None:
    arguments = json.dumps({"command": ["bash", "-lc", TEST], "workdir": "/repo"})
    output = json.dumps({"output": "FAILED", "metadata": {"exit_code": 1}})
    call = {"type": "function_call", "name": "shell", "arguments": arguments, "call_id": "c1"}
    patch = ["apply_patch", "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch"]
    edit = {"type": "function_call", "name": "shell", "call_id": "c2"}
    form, counts, session = read(
        tmp_path,
        {"id": "s1", "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "reasoning", "summary": []},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": output},
        {**edit, "arguments": json.dumps({"command": patch})},
        {"type": "function_call_output", "call_id": "c2", "output": output.replace("1", "0")},
    )
    assert (form, counts) == ("codex", (1, 2, 2, 2, 2, 1, 0))
    assert next(session.calls()).command == TEST
    assert next(session.calls()).cwd == "/repo"


def test_codex_exec_json(tmp_path: Path) -> None:
    item = {"id": "i1", "type": "command_execution", "command": TEST, "status": "failed"}
    found = read(
        tmp_path,
        {"type": "thread.started", "thread_id": "s1"},
        {"type": "turn.started"},
        {"type": "item.started", "item": {**item, "status": "in_progress"}},
        {"type": "item.completed", "item": {**item, "exit_code": 1, "aggregated_output": "F"}},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done."}},
        {"type": "turn.completed", "usage": {}},
    )
    assert found[:2] == ("codex", (1, 2, 1, 1, 1, 0, 0))
    assert found[2].turns[-1].text == "Done."


def test_codex_commands_that_go_on(tmp_path: Path) -> None:
    def put(**payload: Any) -> Any:
        return {"type": "response_item", "timestamp": "2026-01-01T00:00:00Z", "payload": payload}

    def call(number: int, name: str, given: Any, output: str) -> list[Any]:
        found = {"type": "function_call", "name": name, "call_id": f"c{number}"}
        answer = {"type": "function_call_output", "call_id": f"c{number}", "output": output}
        return [put(**found, arguments=json.dumps(given)), put(**answer)]

    head = "Chunk ID: 1\nWall time: 1 seconds\n"
    _, counts, session = read(
        tmp_path,
        *call(
            1, "exec_command", {"cmd": TEST}, head + "Process running with session ID 7\nOutput:\n"
        ),
        *call(
            2, "write_stdin", {"session_id": 7}, head + "Process exited with code 0\nOutput:\nOK"
        ),
    )
    assert counts == (1, 2, 2, 2, 1, 0, 0)
    assert [call.result and call.result.running for call in session.calls()] == [True, False]


def test_openhands_pairs_of_the_oldest_outputs(tmp_path: Path) -> None:
    said = {"action": "message", "source": "user", "args": {"content": "Go"}}
    act = {"action": "run", "source": "agent", "args": {"command": TEST, "thought": "t"}}
    seen = {"observation": "run", "content": "OK", "extras": {"exit_code": 0, "command": TEST}}
    nothing = {"observation": "null", "content": "", "extras": {}}
    found = read(tmp_path, {"instance_id": "i", "history": [[said, nothing], [act, seen]]})
    assert found[:2] == ("openhands", (1, 1, 1, 1, 1, 0, 0))


def test_opencode_steps_of_one_message_and_calls_that_run(tmp_path: Path) -> None:
    def tool(number: int, status: str, **state: Any) -> Any:
        found = {"type": "tool", "id": f"p{number}", "callID": f"c{number}", "tool": "bash"}
        return {**found, "state": {"status": status, "input": {"command": "x"}, **state}}

    parts = [
        {"type": "step-start", "id": "p1"},
        tool(2, "completed", output="", metadata={"exit": 0}),
        {"type": "step-finish", "id": "p3"},
        {"type": "step-start", "id": "p4"},
        tool(5, "error", error="Aborted"),
        tool(6, "running"),
    ]
    info = {"id": "s1", "projectID": "p", "directory": "/repo"}
    message = {"info": {"id": "m1", "role": "assistant", "sessionID": "s1"}, "parts": parts}
    found = read(tmp_path, {"info": info, "messages": [message]})
    assert found[:2] == ("opencode", (1, 2, 3, 2, 1, 0, 0))


def test_atif_subagents_are_sessions_of_their_own(tmp_path: Path) -> None:
    step = {"step_id": 1, "source": "agent", "message": "hi"}
    inner = {"schema_version": "ATIF-v1.7", "trajectory_id": "in", "agent": {}, "steps": [step]}
    outer = {**inner, "trajectory_id": "out", "subagent_trajectories": [inner]}
    path = tmp_path / "log"
    path.write_text(json.dumps(outer))
    sessions = list(read_file(path))
    assert [(session.id, session.parent) for session in sessions] == [("out", ""), ("in", "out")]


def test_mini_swe_agent_with_responses_objects(tmp_path: Path) -> None:
    call = {"type": "function_call", "name": "bash", "call_id": "c1"}
    output = [{**call, "arguments": json.dumps({"command": TEST})}]
    answer = {"type": "function_call_output", "call_id": "c1", "output": "OK"}
    messages = [
        {"role": "user", "content": "Go"},
        {"object": "response", "output": output},
        {**answer, "extra": {"returncode": 0}},
    ]
    record = {"trajectory_format": "mini-swe-agent-1.1", "messages": messages, "info": {}}
    found = read(tmp_path, record)
    assert found[:2] == ("mini_swe_agent", (1, 1, 1, 1, 1, 0, 0))
