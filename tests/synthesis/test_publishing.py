"""A data set of tasks on its way to a Hub: what travels, what is refused."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from harness_adapters.cli.synth import app
from harness_adapters.errors import StoreError
from harness_adapters.synthesis.manifest import read_manifest, write_manifest
from harness_adapters.synthesis.publishing import files_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "dataset"


class Hub(BaseHTTPRequestHandler):
    """As much of a Hub as an upload of small files to a data set asks for."""

    files: dict[str, bytes]
    created: list[dict[str, Any]]
    cards: list[str]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.split("?")[0]
        if self.headers.get("Authorization") != "Bearer hf_test":
            self.send({"error": "Invalid username or password."}, 401)
        elif path == "/api/repos/create":
            self.created.append(json.loads(body))
            self.send({"url": f"http://{self.headers['Host']}/datasets/own/tasks"})
        elif path == "/api/validate-yaml":
            self.cards.append(json.loads(body)["content"])
            self.send({"errors": [], "warnings": []})
        elif path == "/api/datasets/own/tasks/preupload/main":
            asked = json.loads(body)["files"]
            modes = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in asked
            ]
            self.send({"files": modes})
        elif path == "/api/datasets/own/tasks/commit/main":
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    content = base64.b64decode(line["value"]["content"])
                    self.files[line["value"]["path"]] = content
            address = f"http://{self.headers['Host']}/datasets/own/tasks/commit/{'1' * 40}"
            self.send({"success": True, "commitOid": "1" * 40, "commitUrl": address})
        else:
            self.send({"error": f"no POST {path}"}, 404)

    def do_GET(self) -> None:
        found = re.fullmatch(r"/api/datasets/own/tasks(?:/.*)?", self.path.split("?")[0])
        info = {"id": "own/tasks", "sha": "0" * 40, "siblings": [], "private": False, "tags": []}
        self.send(info if found else {"error": "no"}, 200 if found else 404)

    def send(self, value: object, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[type[Hub]]:
    class Own(Hub):
        files: dict[str, bytes] = {}  # noqa: RUF012
        created: list[dict[str, Any]] = []  # noqa: RUF012
        cards: list[str] = []  # noqa: RUF012
        address = ""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Own.address = f"http://127.0.0.1:{server.server_port}"
    yield Own
    server.shutdown()
    server.server_close()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    place = tmp_path / "dataset"
    shutil.copytree(EXAMPLES, place)
    (place / ".synth").mkdir(exist_ok=True)
    (place / ".synth" / "journal.jsonl").write_text("not for others\n")
    return place


def pushed(dataset: Path, hub: type[Hub], token: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: huggingface_hub takes the Hub's address when it is imported."""
    env = {
        **os.environ,
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": token,
        "HF_HOME": str(dataset.parent / "hf"),
    }
    command = "from harness_adapters.cli.main import main; main()"
    argv = [sys.executable, "-c", command, "synth", "push", str(dataset), "own/tasks"]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_everything_but_the_journal_is_uploaded(dataset: Path, hub: type[Hub]) -> None:
    done = pushed(dataset, hub, "hf_test")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("/datasets/own/tasks")
    assert hub.cards == [(dataset / "README.md").read_text()]
    assert hub.created[0]["type"] == "dataset" and hub.created[0]["name"] == "tasks"
    wanted = {str(path.relative_to(dataset)): path.read_bytes() for path in files_of(dataset)}
    assert hub.files == wanted and not any(name.startswith(".synth") for name in wanted)
    assert {"manifest.parquet", "manifest.jsonl", "README.md"} <= wanted.keys()


def test_a_hub_that_refuses_is_one_line(dataset: Path, hub: type[Hub]) -> None:
    done = pushed(dataset, hub, "hf_wrong")
    assert done.returncode != 0 and not hub.files
    assert "own/tasks: not uploaded: " in done.stderr and "Traceback" not in done.stderr


def test_a_dry_run_lists(dataset: Path) -> None:
    done = CliRunner().invoke(app, ["push", str(dataset), "own/tasks", "--dry-run"])
    assert done.exit_code == 0
    names = [line.split()[-1] for line in done.output.splitlines()]
    assert "README.md" in names and len(names) == len(files_of(dataset))


def test_what_was_not_proved_or_has_no_licence_stays(dataset: Path) -> None:
    rows = list(read_manifest(dataset))
    write_manifest(dataset, [{**rows[0], "licence": ""}, *rows[1:]])
    with pytest.raises(StoreError, match="has no licence"):
        files_of(dataset)
    write_manifest(dataset, rows[1:])
    with pytest.raises(StoreError, match="not both a task and in the manifest"):
        files_of(dataset)
    write_manifest(dataset, rows)
    files_of(dataset)
    (dataset / rows[0]["path"] / "instruction.md").write_text("Do something else altogether.\n")
    with pytest.raises(StoreError, match="was changed since it was proved"):
        files_of(dataset)
    with pytest.raises(StoreError, match=r"no manifest\.jsonl; give the directory"):
        files_of(dataset.parent)


def test_the_manifest_is_the_same_in_both_forms(tmp_path: Path) -> None:
    rows = list(read_manifest(EXAMPLES))
    write_manifest(tmp_path, rows)
    table = pyarrow.parquet.read_table(tmp_path / "manifest.parquet")
    assert list(read_manifest(tmp_path)) == rows
    found = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
    assert found == rows
    write_manifest(tmp_path, [])
    empty = pyarrow.parquet.read_table(tmp_path / "manifest.parquet")
    assert empty.num_rows == 0 and empty.schema == table.schema
