"""A coding agent of forty lines, as a stranger would write it: standard library, no streaming."""

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

TOOL = {
    "type": "function",
    "function": {
        "name": "sh",
        "description": "Run a command.",
        "parameters": {
            "type": "object",
            "properties": {"line": {"type": "string"}},
            "required": ["line"],
        },
    },
}


def main(settings_file: str, question: str) -> int:
    settings = json.loads(Path(settings_file).read_text())
    messages = [{"role": "system", "content": "Use sh."}, {"role": "user", "content": question}]
    while True:
        body = {"model": settings["model"], "messages": messages, "tools": [TOOL]}
        request = urllib.request.Request(
            settings["url"] + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            message = json.load(answer)["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            print(message["content"])
            return 0
        for call in message["tool_calls"]:
            line = json.loads(call["function"]["arguments"])["line"]
            done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
            told = done.stdout + done.stderr
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": told})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
