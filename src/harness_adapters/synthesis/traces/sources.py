"""Files as streams of records: JSON Lines, JSON documents, SQLite, Parquet; gzip of the first two.

What a file is, its first bytes say, not its name.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.traces import databases, values

LINE_LIMIT = 256 << 20
"""Bytes of one line; a longer one is passed over and counted as broken."""

DOCUMENT_LIMIT = 256 << 20
"""Bytes of one JSON document that isn't written line by line."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A place where no record could be read."""

    reason: str


@dataclass(slots=True)
class Source:
    """A file's records, and how many bytes were read for those given so far."""

    kind: str
    records: Iterator[dict[str, Any] | Broken] = field(default_factory=lambda: iter(()))
    read_bytes: int = 0
    damage: str | None = None
    """Why reading ended before the file's end; what came before it was given."""


def open_source(path: Path) -> Source:
    """Open a file; TraceError when it is none of the kinds that we read."""
    if path.is_dir():
        return Source("a folder", iter(databases.folder_records(path)))
    if not path.is_file():
        raise TraceError(f"{path}: no such file; check the path")
    with path.open("rb") as file:
        magic = file.read(16)
    if magic.startswith(b"SQLite format 3\x00"):
        return Source("a SQLite database", iter(databases.sqlite_records(path)))
    if magic.startswith(b"PAR1"):
        return Source("a Parquet file", iter(databases.parquet_records(path)))
    if not magic.strip():
        raise TraceError(f"{path}: empty; nothing to read")
    source = Source("text")
    source.records = _text(path, source, compressed=magic.startswith(b"\x1f\x8b"))
    return source


def _open(path: Path, *, compressed: bool) -> IO[bytes]:
    return gzip.open(path, "rb") if compressed else path.open("rb")  # type: ignore[return-value]


def _text(path: Path, source: Source, *, compressed: bool) -> Iterator[dict[str, Any] | Broken]:
    """JSON Lines, unless the first line alone is no JSON but the whole file is."""
    try:
        with _open(path, compressed=compressed) as file:
            first = _next_line(file)
            while first is not None and not first.strip():
                first = _next_line(file)
            whole = first is None or not isinstance(values.parse(first or b""), dict | list)
            if whole:
                document = _document(path, compressed=compressed)
                if document is not None:
                    source.kind = "a JSON document"
                    yield from document
                    return
            source.kind = "JSON Lines"
            line = first
            while line is not None:
                source.read_bytes += len(line)
                if line.strip():
                    yield from _line(line)
                line = _next_line(file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        source.damage = f"{path}: damaged gzip ({error}); compress it again"


def _next_line(file: IO[bytes]) -> bytes | None:
    """The next line without its end; None at the end; a line over the limit comes back cut."""
    line = file.readline(LINE_LIMIT)
    if not line:
        return None
    if len(line) >= LINE_LIMIT and not line.endswith(b"\n"):
        while rest := file.readline(1 << 20):
            if rest.endswith(b"\n"):
                break
    return line


def _line(line: bytes) -> Iterator[dict[str, Any] | Broken]:
    if len(line) >= LINE_LIMIT:
        yield Broken("lines_too_long")
        return
    if line.startswith(b"\xef\xbb\xbf"):
        line = line[3:]
    text = line.decode("utf-8", errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        yield Broken("not_json")
        return
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        yield from listed(value)
    else:
        yield Broken("not_an_object")


def _document(path: Path, *, compressed: bool) -> list[dict[str, Any] | Broken] | None:
    """The records of a file that is one JSON document or several written over many lines."""
    with _open(path, compressed=compressed) as file:
        data = file.read(DOCUMENT_LIMIT + 1)
    if len(data) > DOCUMENT_LIMIT:
        return None
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="replace").read()
    found: list[dict[str, Any] | Broken] = []
    decoder, position = json.JSONDecoder(), 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        if isinstance(value, dict):
            found.append(value)
        elif isinstance(value, list):
            found += listed([entry for entry in value if isinstance(entry, dict)])
        else:
            found.append(Broken("not_an_object"))
    return found


def listed(entries: list[dict[str, Any]]) -> list[dict[str, Any] | Broken]:
    """The records of a list: messages or events of one session stay together."""
    first = entries[0] if entries else {}
    if "role" in first or "from" in first:
        return [{"messages": entries}]
    if isinstance(first.get("action"), str) and "trajectory" not in first:
        return [{"history": entries}]
    return list(entries)
