"""codex."""

from __future__ import annotations

import json
from typing import Any

from .story import TEST, Sample


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
