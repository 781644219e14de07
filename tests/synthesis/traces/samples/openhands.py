"""OpenHands, both versions."""

from __future__ import annotations

import json
from typing import Any

from .story import AFTER, BEFORE, TEST, Sample


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
