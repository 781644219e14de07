"""The report's page, live: served on this machine while a run trains or an evaluation plays."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from harness_adapters.errors import HarnessAdaptersError
from harness_adapters.report.page import render, waiting_page

_WATCHED = ("run.sqlite", "run.sqlite-wal", "metrics.jsonl", "config.toml")


class Watch:
    """Builds the page again when the run has changed and somebody asks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._built = ""
        self._page = ""
        self._lock = asyncio.Lock()
        self.app = Starlette(
            routes=[
                Route("/", self._index),
                Route("/version", self._version),
            ]
        )

    def version(self) -> str:
        """Changes whenever the run's files do."""
        state: list[tuple[str, int, int]] = []
        for name in _WATCHED:
            try:
                stat = (self._root / name).stat()
            except OSError:
                continue
            state.append((name, stat.st_mtime_ns, stat.st_size))
        return hashlib.sha256(repr(state).encode()).hexdigest()[:16]

    async def _index(self, request: Request) -> Response:
        del request
        async with self._lock:
            now = self.version()
            if now != self._built:
                self._page = await asyncio.to_thread(self._build, now)
                self._built = now
        return HTMLResponse(self._page, headers={"Cache-Control": "no-store"})

    async def _version(self, request: Request) -> Response:
        del request
        return PlainTextResponse(self.version(), headers={"Cache-Control": "no-store"})

    def _build(self, version: str) -> str:
        try:
            return render(self._root, live=version)
        except HarnessAdaptersError as error:
            return waiting_page(self._root.name, str(error), version)
