"""Reading what an agent left behind, without trusting it."""

import os
import stat
from pathlib import Path

MAX_BYTES = 1 << 20


class UnreadableError(Exception):
    """The file isn't there, isn't a plain file, is too large or isn't text."""


def read(workdir: Path, path: str) -> str:
    """Text of a file below the working directory. Follows no link in the last component."""
    try:
        handle = os.open(workdir / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise UnreadableError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadableError(f"{path}: not a plain file")
    with os.fdopen(handle, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableError(f"{path}: not UTF-8 text") from None


def lines_of(text: str) -> list[str]:
    """Lines without trailing blanks, and without empty lines at the end."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def short(text: object, limit: int = 120) -> str:
    """A value for a message."""
    shown = repr(text)
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"
