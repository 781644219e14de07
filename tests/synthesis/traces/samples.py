"""A small log of each format, written for these tests: the records, and the counts they hold.

Every sample tells one story: read `sums.py`, see a test fail with code 1, edit the file, see the
test pass with code 0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

BEFORE = "def add(a, b):\n    return a - b\n"
AFTER = "def add(a, b):\n    return a + b\n"
TEST = "python3 -m unittest test_sums.py"


@dataclass(frozen=True)
class Sample:
    format: str
    records: list[Any]
    counts: tuple[int, int, int, int, int, int]
    """sessions, turns, tool calls, results, exit codes known, edits"""
    document: bool = False
    """One JSON document per record instead of JSON Lines."""

    @property
    def text(self) -> str:
        if self.document:
            return json.dumps(self.records[0], indent=1)
        return "".join(json.dumps(record) + "\n" for record in self.records)


def claude_code() -> Sample:
    records: list[dict[str, Any]] = []

    def put(kind: str, message: dict[str, Any], **more: Any) -> None:
        number = len(records) + 1
        records.append(
            {
                "type": kind,
                "uuid": f"u{number}",
                "parentUuid": f"u{number - 1}" if number > 1 else None,
                "sessionId": "s1",
                "version": "2.1.0",
                "cwd": "/repo",
                "gitBranch": "main",
                "isSidechain": False,
                "timestamp": f"2026-01-01T00:00:{number:02}.000Z",
                "message": {"role": kind, **message},
                **more,
            }
        )

    def use(message: str, call: str, name: str, given: dict[str, Any]) -> None:
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        put("assistant", {"id": message, "model": "m", "content": [block]})

    def answer(call: str, text: str, details: Any, error: bool | None = None) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": error}
        put("user", {"content": [block]}, toolUseResult=details)

    put("user", {"content": "Make the test pass"})
    thought = {"type": "thinking", "thinking": "look first"}
    put("assistant", {"id": "m1", "model": "m", "content": [thought]})
    put("assistant", {"id": "m1", "model": "m", "content": [{"type": "text", "text": "Reading."}]})
    use("m1", "t1", "Read", {"file_path": "/repo/sums.py"})
    shown = {"filePath": "/repo/sums.py", "content": BEFORE, "startLine": 1}
    shown |= {"numLines": 3, "totalLines": 3}
    numbered = "     1→def add(a, b):\n     2→    return a - b"
    answer("t1", numbered, {"type": "text", "file": shown})
    use("m2", "t2", "Bash", {"command": TEST})
    answer("t2", "Exit code 1\nFAILED (failures=1)", "Error: Exit code 1\nFAILED", True)
    use("m3", "t3", "Edit", {"file_path": "/repo/sums.py", "old_string": "-", "new_string": "+"})
    details = {"filePath": "/repo/sums.py", "oldString": "-", "newString": "+"}
    answer("t3", "updated", {**details, "originalFile": BEFORE, "structuredPatch": []})
    use("m4", "t4", "Bash", {"command": TEST})
    answer("t4", "OK", {"stdout": "OK", "stderr": "", "interrupted": False}, False)
    put("assistant", {"id": "m5", "model": "m", "content": [{"type": "text", "text": "Done."}]})
    return Sample("claude_code", records, (1, 5, 4, 4, 2, 1))


def codex() -> Sample:
    records: list[dict[str, Any]] = []

    def put(kind: str, **payload: Any) -> None:
        time = f"2026-01-01T00:00:{len(records):02}Z"
        records.append({"timestamp": time, "type": kind, "payload": payload})

    def run(call: str, code: int, text: str) -> None:
        arguments = json.dumps({"cmd": TEST, "workdir": "/repo"})
        put("response_item", type="reasoning", summary=[])
        put(
            "response_item",
            type="function_call",
            name="exec_command",
            arguments=arguments,
            call_id=call,
        )
        shown = f"Chunk ID: 1a\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n"
        put("response_item", type="function_call_output", call_id=call, output=shown + text)

    git = {"commit_hash": "c0ffee", "branch": "main"}
    put("session_meta", id="s1", cwd="/repo", cli_version="0.140.0", git=git)
    put("turn_context", cwd="/repo", model="m")
    environment = [{"type": "input_text", "text": "<environment_context></environment_context>"}]
    put("response_item", type="message", role="user", content=environment)
    asked = [{"type": "input_text", "text": "Make the test pass"}]
    put("response_item", type="message", role="user", content=asked)
    put("event_msg", type="user_message", message="Make the test pass")
    run("c1", 1, "FAILED (failures=1)\n")
    patch = (
        "*** Begin Patch\n*** Update File: sums.py\n@@\n"
        "-    return a - b\n+    return a + b\n*** End Patch"
    )
    put("response_item", type="custom_tool_call", name="apply_patch", call_id="c2", input=patch)
    diff = "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"
    changes = {"/repo/sums.py": {"type": "update", "unified_diff": diff, "move_path": None}}
    put("event_msg", type="patch_apply_end", call_id="c2", success=True, changes=changes)
    output = "Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess."
    put("response_item", type="custom_tool_call_output", call_id="c2", output=output)
    run("c3", 0, "OK\n")
    put("event_msg", type="agent_message", message="Done.")
    done = [{"type": "output_text", "text": "Done."}]
    put("response_item", type="message", role="assistant", content=done)
    return Sample("codex", records, (1, 4, 3, 3, 3, 1))


def pi() -> Sample:
    records: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s1", "cwd": "/repo", "timestamp": "2026-01-01"}
    ]

    def put(**message: Any) -> None:
        number = len(records)
        parent = f"n{number - 1}" if number > 1 else None
        record = {"type": "message", "id": f"n{number}", "parentId": parent, "message": message}
        records.append(record)

    def call(identity: str, name: str, given: dict[str, Any]) -> None:
        block = {"type": "toolCall", "id": identity, "name": name, "arguments": given}
        put(role="assistant", content=[block], api="x", model="m", stopReason="toolUse")

    def result(identity: str, name: str, text: str, error: bool = False, **details: Any) -> None:
        content = [{"type": "text", "text": text}]
        put(
            role="toolResult",
            toolCallId=identity,
            toolName=name,
            content=content,
            isError=error,
            details=details,
        )

    put(role="user", content=[{"type": "text", "text": "Make the test pass"}])
    call("t1", "read", {"path": "sums.py"})
    result("t1", "read", BEFORE)
    call("t2", "bash", {"command": TEST})
    result("t2", "bash", "FAILED (failures=1)\n\nCommand exited with code 1", True)
    edit = {"oldText": "a - b", "newText": "a + b"}
    call("t3", "edit", {"path": "sums.py", "edits": [edit]})
    result("t3", "edit", "Successfully replaced text", diff="-2     return a - b")
    call("t4", "bash", {"command": TEST})
    result("t4", "bash", "OK")
    put(role="assistant", content=[{"type": "text", "text": "Done."}], api="x", stopReason="stop")
    return Sample("pi", records, (1, 5, 4, 4, 2, 1))


def opencode() -> Sample:
    def tool(number: int, name: str, given: dict[str, Any], output: str, **metadata: Any) -> Any:
        state = {"status": "completed", "input": given, "output": output, "metadata": metadata}
        part = {"type": "tool", "id": f"p{number}", "tool": name, "callID": f"c{number}"}
        return message("assistant", number, {**part, "state": state})

    def message(role: str, number: int, part: dict[str, Any]) -> Any:
        info = {"role": role, "id": f"m{number}", "sessionID": "s1", "time": {"created": number}}
        return {"info": info, "parts": [part]}

    fixed = {"file": "/repo/sums.py", "before": BEFORE, "after": AFTER}
    messages = [
        message("user", 1, {"type": "text", "id": "p1", "text": "Make the test pass"}),
        tool(2, "read", {"filePath": "/repo/sums.py"}, "<content>"),
        tool(3, "bash", {"command": TEST}, "FAILED (failures=1)", exit=1),
        tool(4, "edit", {"filePath": "/repo/sums.py"}, "Edit applied", filediff=fixed),
        tool(5, "bash", {"command": TEST}, "OK", exit=0),
        message("assistant", 6, {"type": "text", "id": "p6", "text": "Done."}),
    ]
    info = {"id": "s1", "projectID": "global", "directory": "/repo", "version": "1.18.0"}
    record = {"info": info, "messages": messages}
    return Sample("opencode", [record], (1, 5, 4, 4, 2, 1), document=True)


def hermes() -> Sample:
    def call(number: int, name: str, **given: Any) -> Any:
        function = {"name": name, "arguments": json.dumps(given)}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        return {"role": "assistant", "content": "", "tool_calls": calls}

    def result(number: int, **answer: Any) -> Any:
        return {"role": "tool", "tool_call_id": f"c{number}", "content": json.dumps(answer)}

    messages = [
        {"role": "user", "content": "Make the test pass"},
        call(1, "read_file", path="sums.py"),
        result(1, content="1|def add(a, b):\n2|    return a - b\n3|", total_lines=2),
        call(2, "terminal", command=TEST),
        result(2, output="FAILED (failures=1)", exit_code=1, error=None),
        call(3, "patch", path="sums.py", old_string="a - b", new_string="a + b", mode="replace"),
        result(3, success=True, diff="--- a\n+++ b\n", resolved_path="/repo/sums.py"),
        call(4, "terminal", command=TEST),
        result(4, output="OK", exit_code=0, error=None),
        {"role": "assistant", "content": "Done."},
    ]
    record = {"id": "s1", "source": "cli", "model": "m", "messages": messages}
    return Sample("hermes", [{**record, "tool_call_count": 4}], (1, 5, 4, 4, 2, 1))


def hermes_sharegpt() -> Sample:
    def call(name: str, **given: Any) -> Any:
        body = json.dumps({"name": name, "arguments": given})
        return {"from": "gpt", "value": f"<think>hm</think>\n<tool_call>\n{body}\n</tool_call>"}

    def result(**answer: Any) -> Any:
        body = json.dumps({"tool_call_id": "", "content": json.dumps(answer)})
        return {"from": "tool", "value": f"<tool_response>\n{body}\n</tool_response>"}

    conversations = [
        {"from": "system", "value": "tools"},
        {"from": "human", "value": "Make the test pass"},
        call("terminal", command=TEST),
        result(output="FAILED", exit_code=1),
        call("patch", path="sums.py", old_string="a - b", new_string="a + b"),
        result(success=True),
        call("terminal", command=TEST),
        result(output="OK", exit_code=0),
        {"from": "gpt", "value": "Done."},
    ]
    return Sample("hermes", [{"conversations": conversations}], (1, 4, 3, 3, 2, 1))


def copilot_cli() -> Sample:
    records: list[dict[str, Any]] = []

    def put(kind: str, **data: Any) -> None:
        time = f"2026-01-01T00:00:{len(records):02}Z"
        records.append({"type": kind, "data": data, "id": f"e{len(records)}", "timestamp": time})

    def call(identity: str, name: str, given: Any, output: str) -> None:
        request = {"toolCallId": identity, "name": name, "arguments": given, "type": "function"}
        put("assistant.message", messageId=f"m-{identity}", content="", toolRequests=[request])
        put("tool.execution_start", toolCallId=identity, toolName=name, arguments=given)
        result = {"content": output}
        put("tool.execution_complete", toolCallId=identity, success=True, result=result)

    context = {"cwd": "/repo", "headCommit": "c0ffee", "branch": "main"}
    put("session.start", sessionId="s1", copilotVersion="1.0.70", context=context)
    put("user.message", content="Make the test pass")
    call("t1", "bash", {"command": TEST}, "FAILED\n<exited with exit code 1>")
    call("t2", "edit", {"path": "/repo/sums.py", "old_str": "-", "new_str": "+"}, "File updated")
    call("t3", "bash", {"command": TEST}, "OK\n<exited with exit code 0>")
    put("assistant.message", messageId="m9", content="Done.", toolRequests=[])
    return Sample("copilot_cli", records, (1, 4, 3, 3, 2, 1))


def openhands_v0() -> Sample:
    events: list[dict[str, Any]] = []

    def call(name: str, action: str, given: dict[str, Any], content: str, extras: Any) -> None:
        number = len(events)
        metadata = {"function_name": name, "model_response": {"id": f"r{number}", "model": "m"}}
        event = {"id": number, "source": "agent", "action": action, "args": given}
        events.append({**event, "tool_call_metadata": metadata})
        answer = {"id": number + 1, "source": "agent", "observation": action, "content": content}
        events.append({**answer, "cause": number, "extras": extras})

    said = {"id": 0, "source": "user", "action": "message", "args": {"content": "Make it pass"}}
    events.append(said)
    code = {"metadata": {"exit_code": 1}}
    call("execute_bash", "run", {"command": TEST, "thought": "see"}, "FAILED", code)
    given = {"path": "/repo/sums.py", "command": "str_replace", "old_str": "-", "new_str": "+"}
    call("str_replace_editor", "edit", given, "edited", {"path": "/repo/sums.py", "diff": "--- a"})
    call("execute_bash", "run", {"command": TEST}, "OK", {"metadata": {"exit_code": 0}})
    finish = {"id": 99, "source": "agent", "action": "finish", "args": {"thought": "Done."}}
    events.append(finish)
    record = {"instance_id": "own-1", "history": events, "metadata": {}}
    return Sample("openhands", [record], (1, 4, 3, 3, 2, 1))


def openhands_v1() -> Sample:
    records: list[dict[str, Any]] = []

    def put(kind: str, source: str, **event: Any) -> None:
        records.append({"kind": kind, "id": f"e{len(records)}", "source": source, **event})

    def call(number: int, name: str, given: dict[str, Any], text: str, **found: Any) -> None:
        request = {"id": f"c{number}", "name": name, "arguments": json.dumps(given)}
        put(
            "ActionEvent",
            "agent",
            thought=[],
            action={**given, "kind": "Action"},
            tool_name=name,
            tool_call_id=f"c{number}",
            tool_call=request,
            llm_response_id=f"r{number}",
        )
        shown = {"content": [{"type": "text", "text": text}], **found}
        put("ObservationEvent", "environment", tool_call_id=f"c{number}", observation=shown)

    message = {"role": "user", "content": [{"type": "text", "text": "Make the test pass"}]}
    put("MessageEvent", "user", llm_message=message)
    call(1, "terminal", {"command": TEST}, "FAILED", exit_code=1)
    edit = {"command": "str_replace", "path": "/repo/sums.py", "old_str": "-", "new_str": "+"}
    states = {"path": "/repo/sums.py", "old_content": BEFORE, "new_content": AFTER}
    call(2, "file_editor", edit, "edited", **states)
    call(3, "terminal", {"command": TEST}, "OK", exit_code=0)
    message = {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    put("MessageEvent", "agent", llm_message=message)
    return Sample("openhands", records, (1, 4, 3, 3, 2, 1))


def swe_agent() -> Sample:
    def step(action: str, observation: str) -> Any:
        thought = "next"
        state = json.dumps({"working_dir": "/repo"})
        found = {"action": action, "observation": observation, "thought": thought, "state": state}
        return {**found, "response": f"{thought}\n```\n{action}\n```"}

    steps = [
        step("open sums.py", "[File: sums.py]"),
        step(TEST, "FAILED"),
        step("edit 2:2\n    return a + b\nend_of_edit", "File updated"),
        step("submit", "diff"),
    ]
    history = [{"role": "system", "content": "S"}, {"role": "user", "content": "Make it pass"}]
    record = {"trajectory": steps, "history": history, "info": {"exit_status": "submitted"}}
    return Sample("swe_agent", [record], (1, 4, 4, 4, 0, 1), document=True)


def mini_v1() -> Sample:
    def run(command: str, code: int, output: str) -> list[Any]:
        asked = f"Next.\n\n```mswea_bash_command\n{command}\n```"
        answer = f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"
        return [{"role": "assistant", "content": asked}, {"role": "user", "content": answer}]

    messages = [
        {"role": "system", "content": "Answer with ```mswea_bash_command blocks"},
        {"role": "user", "content": "Make the test pass"},
        *run(TEST, 1, "FAILED"),
        *run("sed -i s/-/+/ sums.py", 0, ""),
        *run(TEST, 0, "OK"),
    ]
    return Sample("mini_swe_agent", [messages], (1, 3, 3, 3, 3, 0), document=True)


def mini_v2() -> Sample:
    def run(number: int, command: str, code: int) -> list[Any]:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        answer = f"<returncode>{code}</returncode>\n<output>\n</output>"
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": answer},
        ]

    messages = [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Make the test pass"},
        *run(1, TEST, 1),
        *run(2, TEST, 0),
        {"role": "exit", "content": "", "extra": {"exit_status": "Submitted"}},
    ]
    info = {"mini_version": "2.0.0", "exit_status": "Submitted", "submission": ""}
    record = {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1.1"}
    return Sample("mini_swe_agent", [record], (1, 2, 2, 2, 2, 0), document=True)


def atif() -> Sample:
    def step(number: int, name: str, given: Any, content: str) -> Any:
        call = {"tool_call_id": f"c{number}", "function_name": name, "arguments": given}
        results = [{"source_call_id": f"c{number}", "content": content}]
        found = {"step_id": number, "source": "agent", "message": "", "tool_calls": [call]}
        return {**found, "observation": {"results": results}}

    steps = [
        {"step_id": 1, "source": "user", "message": "Make the test pass"},
        step(2, "bash", {"command": TEST}, "FAILED\n[Command finished with exit code 1]"),
        step(3, "str_replace_editor", {"command": "create", "path": "a"}, "created"),
        {"step_id": 4, "source": "agent", "message": "Done."},
    ]
    agent = {"name": "own", "version": "1", "model_name": "m"}
    record = {"schema_version": "ATIF-v1.6", "session_id": "s1", "agent": agent, "steps": steps}
    return Sample("atif", [record], (1, 3, 2, 2, 1, 1), document=True)


def nemo_gym() -> Sample:
    def call(number: int, text: str) -> list[Any]:
        arguments = json.dumps({"command": TEST})
        request = {"type": "function_call", "name": "bash", "arguments": arguments}
        answer = {"type": "function_call_output", "output": text}
        return [{**request, "call_id": f"c{number}"}, {**answer, "call_id": f"c{number}"}]

    output = [
        *call(1, "FAILED\n\nCommand exited with code 1"),
        *call(2, "OK"),
        {"type": "message", "role": "assistant", "content": [{"text": "Done."}]},
    ]
    asked = {"input": [{"role": "user", "content": "Make the test pass", "type": "message"}]}
    response = {"id": "r1", "object": "response", "output": output, "model": "m"}
    record = {"responses_create_params": asked, "response": response, "reward": 1.0}
    return Sample("nemo_gym_responses", [record], (1, 3, 2, 2, 1, 0))


def sts() -> Sample:
    def put(**message: Any) -> Any:
        return {"type": "message", "message": message}

    def run(number: int, output: str) -> list[Any]:
        function = {"name": "bash", "arguments": json.dumps({"command": TEST})}
        calls = [{"id": f"c{number}", "function": function}]
        return [
            put(role="assistant", content="", reasoningContent="hm", toolCalls=calls),
            put(role="tool", content=output, toolCallId=f"c{number}"),
        ]

    records = [
        {"type": "session", "harness": "own-agent", "id": "s1", "cwd": "/repo"},
        put(role="user", content="Make the test pass"),
        *run(1, "FAILED\n\nCommand exited with code 1"),
        *run(2, "OK\n\nCommand exited with code 0"),
        put(role="assistant", content="Done."),
    ]
    return Sample("sts", records, (1, 3, 2, 2, 2, 0))


def chat() -> Sample:
    function = {"name": "bash", "arguments": json.dumps({"command": TEST})}
    messages = [
        {"role": "user", "content": "Make the test pass"},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "FAILED"},
        {"role": "assistant", "content": "Done."},
    ]
    return Sample("chat", [{"messages": messages}], (1, 2, 1, 1, 0, 0))


ALL = (
    claude_code,
    codex,
    pi,
    opencode,
    hermes,
    hermes_sharegpt,
    copilot_cli,
    openhands_v0,
    openhands_v1,
    swe_agent,
    mini_v1,
    mini_v2,
    atif,
    nemo_gym,
    sts,
    chat,
)
