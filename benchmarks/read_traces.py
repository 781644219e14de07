"""How fast session files are read and replayed, and in how much memory.

    python benchmarks/read_traces.py FOLDER [--megabytes 1024]

First every file of FOLDER is read and replayed, for MB a minute on one core. Then JSON Lines of the
given size are made from FOLDER's own lines (as one endless session, the worst case, and as many
short ones) and counted and read, each in a process of its own, for its peak memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness_adapters.synthesis.replay import Replay
from harness_adapters.synthesis.traces.finding import find_files
from harness_adapters.synthesis.traces.reading import count_file, read_file


def read_and_replay(folder: Path) -> None:
    size = counted = replayed = 0.0
    for found in find_files([str(folder)]):
        if not found.path.is_file():
            continue
        size += found.path.stat().st_size / 1e6
        start = time.process_time()
        count_file(found.path)
        counted += time.process_time() - start
        start = time.process_time()
        for session in read_file(found.path):
            Replay(session)
        replayed += time.process_time() - start
    print(f"{size:.1f} MB: counted {60 * size / counted:,.0f} MB a CPU-minute", end=", ")
    print(f"read and replayed {60 * size / replayed:,.0f} MB a CPU-minute")


def make(folder: Path, target: Path, megabytes: int, *, sessions: bool) -> None:
    """One large file in Claude Code's format from all its lines in FOLDER, with ids made unique."""
    lines = []
    for path in sorted(folder.rglob("*.jsonl")):
        report = count_file(path)
        if report.format == "claude_code" and not report.error and not report.counts.broken_lines:
            lines += [line for line in path.read_text().splitlines() if '"uuid"' in line]
    with target.open("w") as file:
        size = copy = 0
        while size < megabytes << 20:
            copy += 1
            for line in lines:
                record = json.loads(line)
                record["uuid"] = f"{record['uuid']}-{copy}"
                record["parentUuid"] = f"{record.get('parentUuid')}-{copy}"
                record["sessionId"] = f"{record['sessionId']}-{copy}" if sessions else "one"
                message = record.get("message")
                if isinstance(message, dict) and "id" in message:
                    message["id"] = f"{message['id']}-{copy}"
                text = json.dumps(record, ensure_ascii=False).replace("toolu_", f"toolu_{copy}_")
                size += file.write(text + "\n")


def one_process(action: str, path: str) -> None:
    start = time.process_time()
    if action == "count":
        shown = str(count_file(Path(path)).counts)
    else:
        sessions = turns = 0
        for session in read_file(Path(path)):
            sessions += 1
            turns += len(session.turns)
        shown = f"{sessions} sessions or parts, {turns} turns"
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    megabytes = Path(path).stat().st_size / 1e6
    rate = 60 * megabytes / seconds
    print(f"  {action}: peak {peak:,.0f} MiB, {rate:,.0f} MB a CPU-minute; {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--process", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.process:
        one_process(arguments.process, str(arguments.folder))
        return
    read_and_replay(arguments.folder)
    with tempfile.TemporaryDirectory() as scratch:
        for sessions in (False, True):
            target = Path(scratch) / "large.jsonl"
            make(arguments.folder, target, arguments.megabytes, sessions=sessions)
            shape = "many sessions" if sessions else "one session"
            print(f"{target.stat().st_size / 1e6:,.0f} MB of JSON Lines, {shape}")
            for action in ("count", "read"):
                command = [sys.executable, __file__, str(target), "--process", action]
                subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
