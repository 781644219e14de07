"""opencode."""

from __future__ import annotations

from typing import Any

from .story import AFTER, BEFORE, TEST, Sample


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
