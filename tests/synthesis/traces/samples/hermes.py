"""hermes: its own export, and ShareGPT."""

from __future__ import annotations

import json
from typing import Any

from .story import TEST, Sample


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
