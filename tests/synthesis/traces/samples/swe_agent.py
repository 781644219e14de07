"""SWE-agent and mini-swe-agent."""

from __future__ import annotations

import json
from typing import Any

from .story import TEST, Sample


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
