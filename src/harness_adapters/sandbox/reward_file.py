"""Reading the reward that a verifier wrote, in a directory that untrusted code could reach."""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path

from harness_adapters.errors import SandboxError

MAX_BYTES = 64 << 10

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def read_reward(directory: Path) -> float:
    """The reward in `reward.txt` (a number) or `reward.json` (a number or `{"reward": number}`).

    Raises SandboxError with the reason unless it is a regular file of at most 64 KiB, no link,
    that holds one finite number in [0, 1]. Both files may be there if they say the same.
    """
    try:
        parent = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise SandboxError(f"reward directory {directory}: {error.strerror}") from None
    try:
        rewards = {}
        for name, parse in (("reward.txt", _parse_text), ("reward.json", _parse_json)):
            data = _read(name, parent)
            if data is not None:
                rewards[name] = _checked(name, parse(name, data))
    finally:
        os.close(parent)
    if not rewards:
        raise SandboxError("the verifier wrote no reward.txt or reward.json")
    if len(set(rewards.values())) > 1:
        raise SandboxError("reward.txt and reward.json disagree")
    return next(iter(rewards.values()))


def _read(name: str, parent: int) -> bytes | None:
    # Non-blocking: opening a FIFO for reading would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SandboxError(f"{name} can't be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise SandboxError(f"{name} is not a regular file")
        data = b""
        while len(data) <= MAX_BYTES and (part := os.read(descriptor, MAX_BYTES + 1)):
            data += part
    finally:
        os.close(descriptor)
    if len(data) > MAX_BYTES:
        raise SandboxError(f"{name} is larger than {MAX_BYTES >> 10} KiB")
    return data


def _parse_text(name: str, data: bytes) -> object:
    text = data.decode(errors="replace").strip()
    if not _NUMBER.fullmatch(text):
        raise SandboxError(f"{name} holds {text[:40]!r}, not one number")
    return float(text)


def _parse_json(name: str, data: bytes) -> object:
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise SandboxError(f"{name} is not valid JSON") from None
    if isinstance(value, dict):
        if set(value) != {"reward"}:
            raise SandboxError(f'{name} must be a number or {{"reward": number}}')
        return value["reward"]
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key stands twice")
    return result


def _refuse(constant: str) -> object:
    raise ValueError(constant)


def _checked(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SandboxError(f"{name} holds no number")
    if not 0 <= value <= 1 or not math.isfinite(value):
        raise SandboxError(f"{name}: the reward is outside [0, 1]")
    return float(value)
