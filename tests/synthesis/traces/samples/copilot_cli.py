"""Copilot CLI."""

from __future__ import annotations

from typing import Any

from .story import TEST, Sample


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
