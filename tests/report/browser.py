"""A real headless Chromium, for tests of what a reader of the page meets.

`browse` loads a page once; `Tab` is driven like a reader would: keys, another width, scrolling. It
speaks the DevTools protocol over a pipe, so that no port and no further package is needed.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_PATIENCE = 240.0
"""Seconds for one answer: machines that test are busy."""
_KEYS = {"ArrowDown": 40, "ArrowUp": 38, "PageDown": 34, "PageUp": 33, "Home": 36, "End": 35,
         "Enter": 13, "Tab": 9}  # fmt: skip


def browse(chromium: str, page: str, profile: Path) -> tuple[str, str]:
    """The page's final DOM and the browser's log of its console."""
    result = subprocess.run(
        [chromium, *_FLAGS, f"--user-data-dir={profile}", "--enable-logging=stderr", "--v=0",
         "--virtual-time-budget=2000", "--dump-dom", page],
        capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return result.stdout, "\n".join(console)


class Tab:
    """One page in a browser of its own; leaving ends the browser."""

    def __init__(self, chromium: str, profile: Path, *, width: int = 1200, height: int = 900):
        ours, theirs = os.pipe(), os.pipe()
        # High numbers: the shell below may not overwrite one descriptor with the other.
        inward, outward = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (ours[0], theirs[1]))
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{inward} 4>&{outward}', "bash", chromium, *_FLAGS,
             f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(inward, outward), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for fd in (ours[0], theirs[1], inward, outward):
            os.close(fd)
        self._to, self._from = ours[1], theirs[0]
        self._rest, self._count, self._session = b"", 0, ""
        self.complaints: list[str] = []
        """What the console said, and errors that nothing caught."""
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Tab:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._to)  # a browser whose pipe is closed ends
        os.close(self._from)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        """One command of the protocol; its result."""
        self._count += 1
        message: dict[str, Any] = {"id": self._count, "method": method, "params": values}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: str) -> None:
        """Load a page to its end."""
        self._loaded = False
        self.call("Page.navigate", url=page)
        while not self._loaded:
            self._read()

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, *, times: int = 1) -> None:
        """A key, as the keyboard sends it; the page has drawn what came of it."""
        for _ in range(times):
            for kind in ("rawKeyDown", "keyUp"):
                self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                          windowsVirtualKeyCode=_KEYS[key])  # fmt: skip
        self.ask("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width: int, height: int) -> None:
        """The size of the screen, in px."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def picture(self, file: Path) -> Path:
        """The page as the reader sees it now, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
        return file

    def busy(self) -> float:
        """CPU seconds that the page's script, styles and layout took so far.

        Of its thread alone, so that other work on the machine doesn't count; `measure` comes first.
        """
        metrics = {m["name"]: m["value"] for m in self.call("Performance.getMetrics")["metrics"]}
        parts = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
        return float(sum(metrics[part] for part in parts))

    def measure(self) -> None:
        """Count CPU time from here on."""
        self.call("Performance.enable", timeDomain="threadTicks")

    def _read(self) -> dict[str, Any]:
        """The next message; what complains is kept."""
        until = time.monotonic() + _PATIENCE
        while b"\0" not in self._rest:
            left = until - time.monotonic()
            assert left > 0, "the browser is silent"
            if select.select([self._from], [], [], left)[0]:
                piece = os.read(self._from, 1 << 20)
                assert piece, "the browser has ended"
                self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        method = message.get("method")
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(message["params"])[:600])
        self._loaded |= method == "Page.loadEventFired"
        return message
