"""A data set by its name on the Hub, from a server on this machine that answers as the Hub does."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from . import samples

COMMIT = "0" * 39 + "1"
FILES = {
    "sessions/pi/one.jsonl": samples.pi().text.encode(),
    "sessions/claude.jsonl": samples.claude_code().text.encode(),
    "README.md": b"not asked for",
}


class Hub(BaseHTTPRequestHandler):
    asked: list[str]

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        type(self).asked.append(path)
        prefix = f"/datasets/own/traces/resolve/{COMMIT}/"
        if path.startswith("/api/datasets/own/traces/tree"):
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": "x"}
                for name, data in FILES.items()
            ]
            self.answer(json.dumps(entries).encode())
        elif path.startswith("/api/datasets/own/traces"):
            siblings = [{"rfilename": name} for name in FILES]
            info = {"id": "own/traces", "sha": COMMIT, "siblings": siblings, "private": False}
            self.answer(json.dumps({**info, "tags": [], "downloads": 0, "likes": 0}).encode())
        elif path.startswith(prefix) and path.removeprefix(prefix) in FILES:
            self.answer(FILES[path.removeprefix(prefix)])
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def answer(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", f'"{hashlib.sha1(data).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def synth_read(name: str, endpoint: str, home: Path) -> subprocess.CompletedProcess[str]:
    code = "from harness_adapters.cli.main import main; main()"
    command = [sys.executable, "-c", code, "synth", "read", name, "--json"]
    settings = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    settings |= {"HF_HUB_DISABLE_TELEMETRY": "1", "no_proxy": "127.0.0.1"}
    return subprocess.run(
        command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=240
    )


def test_sessions_of_a_data_set(hub: str, tmp_path: Path) -> None:
    done = synth_read("hf://datasets/own/traces", hub, tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["format"] for line in lines] == ["claude_code", "pi"]
    assert [line["tool_calls"] for line in lines] == [4, 4]
    assert not any(path.endswith("README.md") for path in Hub.asked)


def test_a_data_set_that_is_not_there(hub: str, tmp_path: Path) -> None:
    done = synth_read("hf://datasets/own/nothing", hub, tmp_path)
    assert done.returncode == 2
    assert "hf://datasets/own/nothing: not to be had from the Hub" in done.stderr
    assert "Traceback" not in done.stderr
