"""Claude Code."""

from __future__ import annotations

from typing import Any

from .story import BEFORE, TEST, Sample


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
