"""Reading files into sessions and counts, whatever their format, size or damage."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.traces.draft import Counts
from harness_adapters.synthesis.traces.recorder import HELD, Recorder
from harness_adapters.synthesis.traces.session import Session
from harness_adapters.synthesis.traces.sniffing import choose
from harness_adapters.synthesis.traces.sources import Broken, Source, open_source

HEAD_RECORDS = 40
HEAD_BYTES = 16 << 20


@dataclasses.dataclass(slots=True)
class FileReport:
    """What was read of one file. `error` is one line, or None when the file is a known log."""

    file: str
    format: str | None = None
    counts: Counts = dataclasses.field(default_factory=Counts)
    error: str | None = None
    notes: dict[str, int] = dataclasses.field(default_factory=dict)

    def line(self) -> dict[str, object]:
        """The report as `synth read --json` prints it."""
        return {
            "file": self.file,
            "format": self.format,
            **dataclasses.asdict(self.counts),
            "error": self.error,
            "notes": self.notes,
        }


def count_file(path: Path) -> FileReport:
    """Read a file for its counts alone, in bounded memory; never raises on bad content."""
    report = FileReport(str(path))
    for _ in _read(path, report, keep=False, held=HELD):
        pass
    return report


def read_file(
    path: Path, report: FileReport | None = None, *, held: int = HELD
) -> Iterator[Session]:
    """Sessions of a file, one by one as they end; `report` gets the counts and the error, if any.

    At most about `held` characters of open sessions are kept: a longer session is given in parts
    with one id, the later ones noted as `continued`. Never raises on bad content.
    """
    return _read(path, report or FileReport(str(path)), keep=True, held=held)


def _read(path: Path, report: FileReport, *, keep: bool, held: int) -> Iterator[Session]:
    out: Recorder | None = None
    try:
        source = open_source(path)
        first = _first(source)
        head = [record for record in first if not isinstance(record, Broken)]
        reader = choose(head)
        if reader is None:
            report.counts.broken_lines = len(first) - len(head)
            what = "no trace format that we know" if head else "no JSON object in it"
            report.error = f"{path}: {source.kind}, but {what}; see docs/synthesis.md for formats"
            report.error = source.damage or report.error
            return
        report.format = reader.name
        out = Recorder(str(path), reader.name, keep=keep, held=held)
        reading = reader(out)
        for record in chain(first, source.records):
            if isinstance(record, Broken):
                out.broken(record.reason)
                continue
            reading.feed(record)
            yield from out.ready()
        reading.finish()
        report.error = source.damage
        yield from out.finish()
    except TraceError as error:
        report.error = str(error)
    except OSError as error:
        report.error = f"{path}: {error.strerror or error}; check the file and its rights"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        # A record that no version of its writer makes; the other files must still be read.
        report.error = f"{path}: a record that can't be read ({type(error).__name__}: {error})"
    if out is not None:
        yield from out.finish()
        report.counts = out.counts
        report.notes = dict(sorted((+out.notes).items()))


def _first(source: Source) -> list[dict[str, Any] | Broken]:
    """The first records and the broken ones between them, enough to tell the format."""
    first: list[dict[str, Any] | Broken] = []
    whole = 0
    for record in source.records:
        first.append(record)
        whole += not isinstance(record, Broken)
        if whole >= HEAD_RECORDS or source.read_bytes > HEAD_BYTES:
            break
    return first
