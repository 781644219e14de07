"""Counts of real sessions of many agents, pinned file by file.

The files are other people's and lie beside the repository, or where HARNESS_ADAPTERS_TRACES says;
without them the test is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_adapters.synthesis.traces.reading import FileReport, count_file, read_file

BESIDE = Path(__file__).parents[4] / "shared" / "data" / "traces"
TRACES = Path(os.environ.get("HARNESS_ADAPTERS_TRACES", BESIDE))
PINNED = Path(__file__).parent / "pinned_counts.tsv"
COLUMNS = ("sessions", "turns", "tool_calls", "results", "exit_codes_known", "edits")


def pinned() -> Iterator[tuple[str, str, list[int]]]:
    for line in PINNED.read_text().splitlines()[1:]:
        file, form, *counts = line.split("\t")
        yield file, form, [int(count) for count in counts]


pytestmark = pytest.mark.skipif(not TRACES.is_dir(), reason="no folder with recorded sessions")


@pytest.mark.parametrize(("file", "form", "counts"), [*pinned()], ids=lambda value: str(value)[:60])
def test_counts(file: str, form: str, counts: list[int]) -> None:
    report = count_file(TRACES / file)
    assert report.format == (None if form == "-" else form)
    found = [getattr(report.counts, column) for column in (*COLUMNS, "broken_lines")]
    assert found == counts
    assert (report.error is None) == (form != "-")


def test_reading_counts_what_counting_counts() -> None:
    for file, _, counts in pinned():
        report = FileReport(file)
        sessions = list(read_file(TRACES / file, report))
        assert [getattr(report.counts, c) for c in (*COLUMNS, "broken_lines")] == counts, file
        calls = [call for s in sessions for call in s.calls() if not call.by_user]
        assert len(sessions) == report.counts.sessions, file
        assert sum(len(s.turns) for s in sessions) == report.counts.turns, file
        assert len(calls) == report.counts.tool_calls, file


def test_every_file_of_the_folder_is_pinned() -> None:
    files = {str(p.relative_to(TRACES)) for p in TRACES.rglob("*") if p.is_file()}
    assert files - {"MANIFEST.tsv"} == {file for file, _, _ in pinned()}
