"""pi."""

from __future__ import annotations

from typing import Any

from .story import BEFORE, TEST, Sample


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
