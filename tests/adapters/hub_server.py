"""A Hub on loopback, small: what `huggingface_hub` asks of one to create, upload and download.

Small files travel inside the commit, weights by Git LFS's basic transfer; the paths and bodies are
those of the client's own requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

TOKEN = "hf_test"


@dataclass
class Hub:
    """What the server holds."""

    address: str = ""
    repositories: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """Name -> path -> content of the last commit."""
    private: set[str] = field(default_factory=set)
    objects: dict[str, bytes] = field(default_factory=dict)
    """LFS: sha256 -> content."""
    commits: list[tuple[str, str]] = field(default_factory=list)
    """(repository, message)."""
    broken: bool = False
    """Refuse every commit."""

    revisions: dict[str, str] = field(default_factory=dict)
    """Name -> hash of the last commit."""

    def commit(self, name: str, files: dict[str, bytes], message: str) -> str:
        """Keep a commit; its hash."""
        digest = hashlib.sha1(message.encode())
        for path, content in sorted(files.items()):
            digest.update(path.encode() + content)
        self.repositories[name] = files
        self.revisions[name] = digest.hexdigest()
        self.commits.append((name, message))
        return self.revisions[name]


@contextmanager
def running_hub() -> Iterator[Hub]:
    """A Hub on a free port of this machine."""
    hub = Hub()

    class Bound(_Handler):
        state = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: Hub

    def log_message(self, *_: Any) -> None:
        """Silence."""

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, value: Any, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(value, bytes) else "application/json"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, why: str, code: str = "") -> None:
        headers = {"X_Error_Message": why} | ({"X_Error_Code": code} if code else {})
        self._send({"error": why}, status, **headers)

    def _known(self) -> bool:
        """Whether the token is the right one; refuses otherwise."""
        if self.headers.get("Authorization") == f"Bearer {TOKEN}":
            return True
        self._refuse(401, "Invalid username or password.")
        return False

    def do_POST(self) -> None:
        body, path = self._body(), urlsplit(self.path).path
        if not self._known():
            return
        if path == "/api/validate-yaml":
            answer = _checked(json.loads(body)["content"])
            self._send(answer, 400 if answer["errors"] else 200)
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif found := re.fullmatch(r"/api/models/(.+)/preupload/main", path):
            files = json.loads(body)["files"]
            self._send({"files": [_mode(file) for file in files]})
        elif found := re.fullmatch(r"/(.+)\.git/info/lfs/objects/batch", path):
            self._batch(json.loads(body))
        elif found := re.fullmatch(r"/api/models/(.+)/commit/main", path):
            self._commit(found[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._refuse(404, f"no POST {path}")

    def do_PUT(self) -> None:
        content = self._body()
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(content).hexdigest() != oid:
            self._refuse(400, "the content is not what was announced")
            return
        self.state.objects[oid] = content
        self._send({})

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if found := re.fullmatch(r"/api/models/(.+?)/tree/\w+", path):
            if files := self._files(found[1]):
                self._send([_entry(name, content) for name, content in files.items()])
        elif found := re.fullmatch(r"/api/models/(.+?)/revision/\w+", path):
            if files := self._files(found[1]):
                siblings = [{"rfilename": name} for name in files]
                sha = self.state.revisions[found[1]]
                self._send({"id": found[1], "sha": sha, "siblings": siblings, "private": False})
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/\w+/(.+)", path):
            files = self._files(found[1])
            if files and found[2] in files:
                content = files[found[2]]
                etag = f'"{hashlib.sha256(content).hexdigest()}"'
                self._send(content, ETag=etag, X_Repo_Commit=self.state.revisions[found[1]])
            elif files:
                self._refuse(404, "Entry not found", "EntryNotFound")
        else:
            self._refuse(404, f"no GET {path}")

    def _files(self, name: str) -> dict[str, bytes] | None:
        files = self.state.repositories.get(name)
        if files is None or (name in self.state.private and not self.headers.get("Authorization")):
            self._refuse(404, "Repository not found", "RepoNotFound")
            return None
        return files

    def _create(self, asked: dict[str, Any]) -> None:
        name = f"{asked['organization']}/{asked['name']}"
        url = {"url": f"{self.state.address}/{name}"}
        if name in self.state.repositories:
            self._send({"error": "You already created this model repo", **url}, 409)
            return
        self.state.repositories[name] = {}
        if asked.get("private") or asked.get("visibility") == "private":
            self.state.private.add(name)
        self._send(url)

    def _batch(self, asked: dict[str, Any]) -> None:
        objects = [
            {
                "oid": one["oid"],
                "size": one["size"],
                "actions": {"upload": {"href": f"{self.state.address}/objects/{one['oid']}"}},
            }
            for one in asked["objects"]
        ]
        self._send({"transfer": "basic", "objects": objects})

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        if self.state.broken:
            self._refuse(500, "Internal error: the disk is full")
            return
        files, message = dict(self.state.repositories[name]), ""
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                message = str(value["summary"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.state.objects[value["oid"]]
        sha = self.state.commit(name, files, message)
        url = f"{self.state.address}/{name}/commit/{sha}"
        self._send({"success": True, "commitOid": sha, "commitUrl": url})


def _checked(card: str) -> dict[str, Any]:
    """A card's front matter has to be a YAML mapping."""
    parts = card.split("---\n", 2)
    front = yaml.safe_load(parts[1]) if card.startswith("---\n") and len(parts) == 3 else {}
    fine = isinstance(front, dict)
    errors = [] if fine else [{"message": "the metadata is not a mapping", "line": 1}]
    return {"errors": errors, "warnings": []}


def _mode(file: dict[str, Any]) -> dict[str, Any]:
    large = file["path"].endswith(".safetensors")
    return {
        "path": file["path"], "uploadMode": "lfs" if large else "regular", "shouldIgnore": False,
        "oid": None,
    }  # fmt: skip


def _entry(name: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": "file", "path": name, "size": len(content),
        "oid": hashlib.sha1(content).hexdigest(),
    }  # fmt: skip
    if name.endswith(".safetensors"):
        sha = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": sha, "size": len(content), "pointerSize": 134}
    return entry
