"""Logs that no agent would write: cut, shuffled, with values of every wrong type."""

from __future__ import annotations

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.synthesis.traces.reading import FileReport, count_file, read_file

from . import samples

SAMPLES = [make() for make in samples.ALL]
WRONG = st.sampled_from(
    [None, True, 0, -1, 1e308, "", "x", "\ud800", [], {}, [[]], [None], {"type": 1}, ["x"], 2**70]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in entries:
            found += places(inner, (*path, key))
    return found


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    result = copy.deepcopy(value)
    inner = result
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return result


def check(data: bytes) -> FileReport:
    """Neither way of reading may raise, and both count alike."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log"
        path.write_bytes(data)
        counted = count_file(path)
        report = FileReport(str(path))
        sessions = list(read_file(path, report))
    assert (report.counts, report.error) == (counted.counts, counted.error)
    error = counted.error or ""
    assert "\n" not in error
    assert "can't be read" not in error
    json.dumps(counted.line())
    assert sum(len(session.turns) for session in sessions) >= counted.counts.turns
    return counted


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_wrong_values_anywhere(sample: samples.Sample, data: st.DataObject) -> None:
    records = sample.records
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(records)))
        try:
            records = replaced(records, path, data.draw(WRONG))
        except (KeyError, IndexError, TypeError):
            continue
    check("".join(json.dumps(record) + "\n" for record in records).encode())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_cut_anywhere(sample: samples.Sample, data: st.DataObject) -> None:
    text = sample.text.encode()
    report = check(text[: data.draw(st.integers(0, len(text)))])
    assert report.counts.tool_calls <= sample.counts[2]
    assert report.counts.broken_lines <= 1 or sample.document


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_bytes_flipped(sample: samples.Sample, data: st.DataObject) -> None:
    text = bytearray(sample.text.encode())
    for _ in range(data.draw(st.integers(1, 20))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    check(bytes(text))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SAMPLES), st.randoms())
def test_lines_shuffled_and_repeated(sample: samples.Sample, random: Any) -> None:
    lines = sample.text.splitlines() * 2
    random.shuffle(lines)
    check("\n".join(lines).encode())


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    check(data)
