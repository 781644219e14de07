"""What makes an audit log tell of tampering: keyed links between entries, and a signed head.

    entry   {..., "seq": 7, "prev": MAC of entry 6, "mac": MAC of all that stands before it}
    head    {"log": path, "entries": 8, "bytes": 4711, "last": MAC of entry 7, ..., "mac": ...}

Every MAC is HMAC-SHA256 (RFC 2104) under a key that is made once on a machine. Key and heads lie
in `paths.audit_dir()`: no sandbox sees it, and whoever can only write the log can make neither an
entry nor a head. One head belongs to one path. The head is written after its entry: a kill between
the two leaves one good entry more than the head knows, never one less.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.errors import StoreError

START = "0" * 64
"""`prev` of the first entry."""

KEY_BYTES = 32
_REST_OF_HEAD = 340
"""Bytes of a head besides the path, with the longest numbers."""
_SEALED = re.compile(rb'(\{.*), "mac": "([0-9a-f]{64})"\}', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a chain stands: after `entries` entries, at `offset` bytes of the file."""

    entries: int = 0
    offset: int = 0
    last: str = START
    """MAC of the last entry."""


def machine_key(home: Path) -> bytes:
    """This machine's key, made when it isn't there yet. Raises StoreError."""
    file = home / "key"
    try:
        if not file.exists():
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = home / f"key.{os.getpid()}.{secrets.token_hex(4)}"
            fresh.touch(0o600, exist_ok=False)
            fresh.write_bytes(secrets.token_bytes(KEY_BYTES))
            with suppress(FileExistsError):  # another process was first: its key is the key
                file.hardlink_to(fresh)
            fresh.unlink()
        key = file.read_bytes()
    except OSError as error:
        raise StoreError(
            f"audit key {file}: {error.strerror}; HARNESS_ADAPTERS_AUDIT names another directory"
        ) from None
    if len(key) != KEY_BYTES:
        raise StoreError(f"audit key {file}: {len(key)} bytes, not {KEY_BYTES}; it was damaged")
    return key


def head_file(home: Path, log: Path) -> Path:
    """Where the head of a log lies; `log` absolute, links resolved."""
    return home / "heads" / f"{hashlib.sha256(os.fsencode(log)).hexdigest()[:32]}.json"


def sign(key: bytes, data: bytes) -> str:
    """HMAC-SHA256 as 64 hexadecimal digits."""
    return hmac.digest(key, data, "sha256").hex()


def seal(key: bytes, values: dict[str, Any], at: Position, gap: bytes = b"") -> tuple[bytes, str]:
    """One entry as a line with its end, and its MAC.

    `gap` are bytes between the last entry and this one that are no entry (a line that a full disk
    cut, a log from before there were chains): the entry vouches for them by their hash.
    """
    values = values | {"seq": at.entries, "prev": at.last}
    if gap:
        values["gap"] = {"bytes": len(gap), "sha256": hashlib.sha256(gap).hexdigest()}
    body = json.dumps(values)[:-1].encode()
    mac = sign(key, body)
    return body + b', "mac": "' + mac.encode() + b'"}\n', mac


def step(
    key: bytes, line: bytes, gap: memoryview, at: Position
) -> tuple[dict[str, Any] | None, str]:
    """Does `line` (no line end) go on from `at`, `gap` bytes after it?

    Gives its values and an empty text, or None and what is wrong with it.
    """
    sealed = _SEALED.fullmatch(line)
    if sealed is None:
        return None, "not a whole entry"
    body, mac = sealed[1], sealed[2].decode()
    if not hmac.compare_digest(sign(key, body), mac):
        return None, "changed, or not written with this machine's key"
    values = json.loads(body + b"}")
    told = values.get("gap")
    if values["seq"] != at.entries:
        return None, f"entry {values['seq']} stands where entry {at.entries} belongs"
    if values["prev"] != at.last:
        return None, "an entry of another log"
    if gap or told:
        found = {"bytes": len(gap), "sha256": hashlib.sha256(gap).hexdigest()}
        if told != found:
            return None, "what stands before it was added or changed"
    return values | {"mac": mac}, ""


@dataclass(frozen=True, slots=True)
class Walk:
    """How far a chain holds."""

    at: Position
    """After the last good entry."""
    lines: int
    """Whole lines from the start of the walk up to there."""
    gaps: int
    """Places where an entry vouches for bytes that are no entries."""
    lost: int
    """Entries that the log says it lost when the machine stopped."""
    broken: str
    """What is wrong with the first line after that; empty when there is none."""
    rest: int
    """Bytes after the last good entry."""


def walk(key: bytes, data: bytes, at: Position) -> Walk:
    """Follow the chain through `data`, which starts at `at` in the file."""
    base, lines, gaps, lost, view = at.offset, 0, 0, 0, memoryview(data)
    broken, seen, place = "", 0, 0
    while (end := data.find(b"\n", place)) >= 0:
        seen += 1
        gap = view[at.offset - base : place]
        entry, wrong = step(key, data[place:end], gap, at)
        place = end + 1
        if entry is not None:
            gaps += bool(gap)
            lost += entry.get("lost", 0)
            at, lines, broken = Position(at.entries + 1, base + place, entry["mac"]), seen, ""
        else:
            broken = broken or wrong
    return Walk(at, lines, gaps, lost, broken, base + len(data) - at.offset)


@dataclass(frozen=True, slots=True)
class Head:
    """What is known of a log outside of it."""

    at: Position
    boot: str
    """The kernel's boot id when it was written."""
    lost: int = 0
    """Entries that a stop of the machine took; the next entry tells."""


def boot_id() -> str:
    """Another one after each start of the machine: random(4)."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def write_head(key: bytes, log: Path, head: Head) -> bytes:
    """The head as one line, of the same length for every position of one log."""
    name, at = os.fsdecode(log), head.at
    values = {"log": name, "entries": at.entries, "bytes": at.offset, "last": at.last}
    values |= {"boot": head.boot, "lost": head.lost}
    line = json.dumps({**values, "mac": sign(key, json.dumps(values).encode())})
    return line.encode().ljust(len(json.dumps(name)) + _REST_OF_HEAD) + b"\n"


def read_head(key: bytes, log: Path, data: bytes) -> Head | None:
    """What a head says; None when it is damaged, forged, or of another log."""
    try:
        values = json.loads(data)
        mac = values.pop("mac")
        at = Position(values["entries"], values["bytes"], values["last"])
        head = Head(at, values["boot"], values["lost"])
        good = hmac.compare_digest(mac, sign(key, json.dumps(values).encode()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return head if good and values["log"] == os.fsdecode(log) else None
