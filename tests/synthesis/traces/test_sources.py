"""Files of every kind and with every damage: what can be read is, the rest is counted and told."""

from __future__ import annotations

import dataclasses
import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from harness_adapters.synthesis.traces import sources
from harness_adapters.synthesis.traces.finding import find_files
from harness_adapters.synthesis.traces.reading import FileReport, count_file, read_file

from . import samples


def write(path: Path, data: str | bytes) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def counts(path: Path) -> tuple[int, ...]:
    report = count_file(path)
    assert report.error is None
    return dataclasses.astuple(report.counts)


def test_broken_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    sample = samples.claude_code()
    lines = sample.text.splitlines()
    damaged = ["", "{broken", *lines[:3], "[1]", "42", "\x00\x00", *lines[3:], lines[0][:40]]
    path = write(tmp_path / "log", "\n".join(damaged))
    assert counts(path) == (*sample.counts, 5)


def test_a_byte_order_mark_crlf_and_bytes_that_are_no_utf8(tmp_path: Path) -> None:
    sample = samples.codex()
    data = b"\xef\xbb\xbf" + sample.text.replace("\n", "\r\n").encode()
    assert counts(write(tmp_path / "log", data.replace(b"Done.", b"Don\xff."))) == (
        *sample.counts,
        0,
    )


def test_gzip(tmp_path: Path) -> None:
    sample = samples.pi()
    packed = gzip.compress(sample.text.encode())
    assert counts(write(tmp_path / "log", packed)) == (*sample.counts, 0)
    report = count_file(write(tmp_path / "cut", packed[:-20]))
    assert report.error is not None
    assert "damaged gzip" in report.error
    assert report.counts.turns > 0


def test_one_document_over_many_lines_and_several_in_a_row(tmp_path: Path) -> None:
    for sample in (samples.nemo_gym(), samples.hermes()):
        text = json.dumps(sample.records[0], indent=2)
        assert counts(write(tmp_path / "log", text)) == (*sample.counts, 0)
        double = tuple(2 * count for count in sample.counts)
        assert counts(write(tmp_path / "log", text + "\n\n" + text)) == (*double, 0)
        listed = json.dumps([sample.records[0]] * 2)
        assert counts(write(tmp_path / "log", listed)) == (*double, 0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"hello\nworld\n", "no JSON object"),
        (b'{"a": 1}', "no trace format"),
        (b"SQLite format 3\x00" + b"x" * 100, "SQLite"),
        (b"PAR1" + b"x" * 100, "Parquet"),
        (b"\x1f\x8bnonsense", "gzip"),
        (b"[" * 100_000, "no JSON object"),
        (b'{"messages": [{"role": "user", "content": "hi"', "no JSON object"),
    ],
)
def test_what_is_no_log_is_told_in_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = write(tmp_path / "log", data)
    report = count_file(path)
    assert report.error is not None
    assert words in report.error
    assert str(path) in report.error
    assert "\n" not in report.error
    assert list(read_file(path)) == []


def test_a_missing_file(tmp_path: Path) -> None:
    report = count_file(tmp_path / "nothing")
    assert report.error is not None
    assert "no such file" in report.error


def test_lines_beyond_the_limit_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LINE_LIMIT", 5000)
    sample = samples.claude_code()
    long = json.dumps({**sample.records[0], "uuid": "long", "pad": "x" * 20_000})
    text = sample.text + long + "\n" + sample.text.replace('"u', '"v')
    report = count_file(write(tmp_path / "log", text))
    assert report.counts.broken_lines == 1
    assert report.notes["lines_too_long"] == 1
    assert report.counts.sessions == 1


def opencode_database(path: Path) -> None:
    record = samples.opencode().records[0]
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT,
            directory TEXT, version TEXT, time_created INTEGER);
        CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
            data TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
            time_created INTEGER, data TEXT);
        """
    )
    info = record["info"]
    row = (info["id"], "global", None, info["directory"], info["version"], 1)
    connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)
    for number, message in enumerate(record["messages"]):
        kept = {k: v for k, v in message["info"].items() if k not in ("id", "sessionID")}
        message_id = message["info"]["id"]
        row = (message_id, "s1", number, json.dumps(kept))
        connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
        for part in message["parts"]:
            data = json.dumps({k: v for k, v in part.items() if k != "id"})
            row = (part["id"], message_id, "s1", number, data)
            connection.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def hermes_database(path: Path) -> None:
    record = samples.hermes().records[0]
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL,
            tool_call_count INTEGER);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT,
            tool_call_id TEXT, tool_calls TEXT, timestamp REAL);
        """
    )
    row = (record["id"], record["source"], record["model"], 1.0, 4)
    connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, ?)", row)
    for number, message in enumerate(record["messages"]):
        calls = json.dumps(message["tool_calls"]) if "tool_calls" in message else None
        found = (message["content"], message.get("tool_call_id"), calls, 1.0)
        row = (number, record["id"], message["role"], *found)
        connection.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    connection.commit()
    connection.close()


def test_databases(tmp_path: Path) -> None:
    opencode_database(tmp_path / "opencode")
    hermes_database(tmp_path / "hermes")
    assert counts(tmp_path / "opencode") == (*samples.opencode().counts, 0)
    assert counts(tmp_path / "hermes") == (*samples.hermes().counts, 0)
    [session] = read_file(tmp_path / "opencode")
    assert (session.id, session.cwd, session.format) == ("s1", "/repo", "opencode")
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE things (id INTEGER)")
    other.close()
    assert "things" in str(count_file(tmp_path / "other").error)


def test_a_damaged_database(tmp_path: Path) -> None:
    opencode_database(tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    report = count_file(write(tmp_path / "cut", data[: len(data) // 2]))
    assert report.error is not None


def test_the_storage_folder_of_opencode(tmp_path: Path) -> None:
    record = samples.opencode().records[0]
    storage = tmp_path / "storage"
    for name in ("session/global", "message/s1", "part"):
        (storage / name).mkdir(parents=True)
    (storage / "session/global/s1.json").write_text(json.dumps(record["info"]))
    for message in record["messages"]:
        info = message["info"]
        (storage / f"message/s1/{info['id']}.json").write_text(json.dumps(info))
        folder = storage / "part" / info["id"]
        folder.mkdir()
        for part in message["parts"]:
            whole = {**part, "messageID": info["id"], "sessionID": "s1"}
            (folder / f"{part['id']}.json").write_text(json.dumps(whole))
    [found] = find_files([str(storage)])
    assert counts(found.path) == (*samples.opencode().counts, 0)
    single = next((storage / "part").rglob("p3.json"))
    assert counts(single)[2:5] == (1, 1, 1)


def test_the_folder_of_an_openhands_session(tmp_path: Path) -> None:
    sample = samples.openhands_v1()
    (tmp_path / "events").mkdir()
    state = {"id": "s1", "workspace": {"working_dir": "/repo"}, "persistence_dir": "x"}
    (tmp_path / "base_state.json").write_text(json.dumps(state))
    for number, event in enumerate(sample.records):
        (tmp_path / "events" / f"event-{number:05}-x.json").write_text(json.dumps(event))
    [found] = find_files([str(tmp_path)])
    report = FileReport("x")
    sessions = list(read_file(found.path, report))
    assert report.counts.tool_calls == sample.counts[2]
    assert [session.cwd for session in sessions][:1] == ["/repo"]


def test_folders_are_walked_in_order(tmp_path: Path) -> None:
    for name in ("b/log.jsonl", "a/one.json", ".hidden/log", "c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, samples.sts().text)
    found = [file.path.relative_to(tmp_path).as_posix() for file in find_files([str(tmp_path)])]
    assert found == ["a/one.json", "b/log.jsonl", "c.txt"]


def test_a_long_session_is_given_in_parts_when_memory_is_bounded(tmp_path: Path) -> None:
    records = []
    for number in range(400):
        text = f"turn {number} " + "x" * 1000
        message = {"id": f"m{number}", "model": "m", "content": [{"type": "text", "text": text}]}
        record = {"type": "assistant", "uuid": f"u{number}", "sessionId": "s", "message": message}
        records.append(json.dumps(record))
    path = write(tmp_path / "log", "\n".join(records))
    report = FileReport(str(path))
    parts = list(read_file(path, report, held=50_000))
    assert len(parts) > 3
    assert {part.id for part in parts} == {"s"}
    assert sum(len(part.turns) for part in parts) == 400
    assert report.counts.sessions == 1
    assert report.notes["continued"] == len(parts) - 1
