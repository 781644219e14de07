"""Databases and folders as streams of records, one per session, in the form of an export."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.traces import values

Record = dict[str, Any]


def sqlite_records(path: Path) -> Iterator[Record]:
    """Sessions of an opencode or hermes database, one at a time."""
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.resolve()))}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            tables = _tables(connection)
            if {"session", "message", "part"} <= tables:
                yield from _opencode(connection)
            elif {"sessions", "messages"} <= tables:
                yield from _hermes(connection)
            else:
                known = ", ".join(sorted(tables)[:8]) or "none"
                raise TraceError(f"{path}: a SQLite database of no agent we know (tables: {known})")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise TraceError(f"{path}: damaged SQLite database ({error}); export it again") from error


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {str(row[0]) for row in rows}


def _rows(connection: sqlite3.Connection, query: str, *arguments: Any) -> Iterator[Record]:
    for row in connection.execute(query, arguments):
        yield {key: row[key] for key in row.keys()}  # noqa: SIM118 - a Row iterates its values


def _merged(row: Record) -> Record:
    """A row with the object in its `data` column laid over it."""
    data = values.mapping(values.embedded(row.get("data")))
    rest = {key: value for key, value in row.items() if key != "data"}
    return {**rest, **data}


def _opencode(connection: sqlite3.Connection) -> Iterator[Record]:
    """opencode keeps messages and parts as JSON in a `data` column, ids and times beside it."""
    for row in _rows(connection, "SELECT * FROM session ORDER BY rowid"):
        info = _merged(row)
        info.setdefault("projectID", info.get("project_id"))
        info.setdefault("parentID", info.get("parent_id"))
        info.setdefault("time", {"created": info.get("time_created")})
        parts: dict[Any, list[Record]] = {}
        query = "SELECT * FROM part WHERE session_id = ? ORDER BY id"
        for part in map(_merged, _rows(connection, query, row["id"])):
            parts.setdefault(part.get("message_id"), []).append(part)
        messages = []
        query = "SELECT * FROM message WHERE session_id = ? ORDER BY time_created, id"
        for message in map(_merged, _rows(connection, query, row["id"])):
            message.setdefault("time", {"created": message.get("time_created")})
            found = parts.pop(message.get("id"), [])
            messages.append({"info": message, "parts": found})
        for message_id, found in parts.items():
            messages.append({"info": {"id": message_id, "role": "assistant"}, "parts": found})
        yield {"info": info, "messages": messages}


def _hermes(connection: sqlite3.Connection) -> Iterator[Record]:
    """hermes keeps one row per message; calls as JSON text in `tool_calls`."""
    for row in _rows(connection, "SELECT * FROM sessions ORDER BY rowid"):
        query = "SELECT * FROM messages WHERE session_id = ? ORDER BY id"
        messages = list(_rows(connection, query, row["id"]))
        row.setdefault("tool_call_count", 0)
        yield {**row, "messages": messages}


def parquet_records(path: Path) -> Iterator[Record]:
    """Rows of a Parquet file, batch by batch; needs the package `pyarrow`."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise TraceError(f"{path}: a Parquet file; install pyarrow to read it") from error
    try:
        for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=64):
            yield from batch.to_pylist()
    except (OSError, pyarrow.lib.ArrowException) as error:
        raise TraceError(f"{path}: damaged Parquet file ({error})") from error


def is_session_folder(path: Path) -> bool:
    """Whether a folder as a whole is one log: opencode's storage, or a V1 OpenHands session."""
    storage = (path / "message").is_dir() and (path / "part").is_dir()
    return storage or ((path / "events").is_dir() and (path / "base_state.json").is_file())


def folder_records(path: Path) -> Iterator[Record]:
    """Records of a folder that is one log."""
    if (path / "message").is_dir() and (path / "part").is_dir():
        yield from _opencode_storage(path)
    elif (path / "events").is_dir():
        for file in [path / "base_state.json", *sorted((path / "events").glob("*.json"))]:
            yield from _json(file)
    else:
        raise TraceError(f"{path}: a folder; name the files in it")


def _json(path: Path) -> Iterator[Record]:
    try:
        found = values.parse(path.read_bytes())
    except OSError:
        return
    if isinstance(found, dict):
        yield found


def _opencode_storage(path: Path) -> Iterator[Record]:
    """opencode's storage folder before its database: a file per session, message and part."""
    parts: dict[str, list[Record]] = {}
    for file in sorted((path / "part").rglob("*.json")):
        for part in _json(file):
            parts.setdefault(values.text(part.get("messageID")) or file.parent.name, []).append(
                part
            )
    messages: dict[str, list[Record]] = {}
    for file in sorted((path / "message").rglob("*.json")):
        for info in _json(file):
            entry = {"info": info, "parts": parts.pop(values.text(info.get("id")), [])}
            session = values.text(info.get("sessionID")) or file.parent.name
            messages.setdefault(session, []).append(entry)
    for file in sorted((path / "session").rglob("*.json")):
        for info in _json(file):
            found = messages.pop(values.text(info.get("id")), [])
            yield {"info": info, "messages": found}
    for session, found in messages.items():
        yield {"info": {"id": session, "directory": ""}, "messages": found}
    for message, alone in parts.items():
        info = {"id": message, "role": "assistant"}
        yield {
            "info": {"id": values.text(alone[0].get("sessionID")), "directory": ""},
            "messages": [{"info": info, "parts": alone}],
        }
