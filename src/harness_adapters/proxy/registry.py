"""The proxies that run on this machine: a file for each, locked by its process while it lives."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from harness_adapters.errors import ConfigError, StoreError

STOP_SECONDS = 20.0
"""More than a proxy gives to answers that are under way."""


@dataclass(frozen=True, slots=True)
class Running:
    """One proxy, as `list` shows it."""

    name: str
    pid: int
    address: str
    upstream: str
    log: str
    log_only: bool
    started: float
    """Unix seconds."""


@contextmanager
def registered(home: Path, running: Running) -> Iterator[None]:
    """Be on the list for as long as this lasts. Raises ConfigError when the name is taken."""
    if not re.fullmatch(r"[\w-][\w.-]{0,63}", running.name):
        raise ConfigError(f"--name {running.name!r}: letters, digits, dots and dashes only")
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = home / f"{running.name}.json"
    made = home / f".{running.name}.{os.getpid()}"
    fd = os.open(made, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Locked and filled before it has its name: nobody sees it without a holder.
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, json.dumps(asdict(running)).encode())
        if _read(file) is not None:
            made.unlink()
            raise ConfigError(f"a proxy named {running.name} runs already: choose another --name")
        made.rename(file)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
    finally:
        os.close(fd)


def all_running(home: Path) -> list[Running]:
    """The proxies that live, by name; what killed ones left behind is removed."""
    found = (_read(file) for file in sorted(home.glob("*.json")))
    return [one for one in found if one is not None]


def stop(home: Path, name: str) -> Running:
    """Ask a proxy to end and wait until it has. Raises ConfigError, StoreError."""
    file = home / f"{name}.json"
    running = _read(file) if file.parent == home else None
    if running is None:
        names = ", ".join(one.name for one in all_running(home)) or "none"
        raise ConfigError(f"no proxy named {name!r} runs here (running: {names})")
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _read(file) is not None:
        if time.monotonic() > deadline:
            raise StoreError(f"proxy {name} (process {running.pid}) does not end: kill it")
        time.sleep(0.05)
    return running


def _read(file: Path) -> Running | None:
    """The entry, when its process lives; otherwise its file is removed."""
    try:
        fd = os.open(file, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Running(**json.loads(os.read(fd, 1 << 16)))
    else:
        file.unlink(missing_ok=True)
        return None
    finally:
        os.close(fd)
