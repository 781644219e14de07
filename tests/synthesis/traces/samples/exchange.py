"""Formats made for exchange: ATIF, NeMo Gym, STS, chat messages."""

from __future__ import annotations

import json
from typing import Any

from .story import TEST, Sample


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
