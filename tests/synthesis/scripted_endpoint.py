"""An OpenAI-compatible endpoint on this machine whose answers a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Scripted:
    """Where it listens, and what it was asked."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def scripted_endpoint(answer: Callable[[dict[str, Any]], str]) -> Iterator[Scripted]:
    """Serve `answer(body)` as the model's words; every answer costs 10 tokens."""
    scripted = Scripted()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            scripted.asked.append(body)
            message = {"role": "assistant", "content": answer(body)}
            reply = {"choices": [{"message": message}], "usage": {"total_tokens": 10}}
            data = json.dumps(reply).encode()
            self.send_response(200 if self.path == "/v1/chat/completions" else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    scripted.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield scripted
    finally:
        server.shutdown()
        server.server_close()
