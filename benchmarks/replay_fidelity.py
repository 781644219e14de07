"""Replayed files against the commits that sessions ended in, byte for byte.

    python benchmarks/replay_fidelity.py FOLDER REPOSITORY

FOLDER holds sessions and, beside each, the metadata file of the `entire` checkpoint tool;
REPOSITORY is a clone of the project, whose commits name their checkpoint. Compared are the files
that a session changed, as they were at its end, with the commit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from harness_adapters.synthesis.replay import Content, Replay
from harness_adapters.synthesis.replay.fidelity import Fidelity, against_git
from harness_adapters.synthesis.traces.reading import read_file


def commits(repository: Path, checkpoint: str) -> list[str]:
    """Commits of people that name a checkpoint; not those that the tool made for itself."""
    asked = ["log", "--all", "--format=%H %s", "--grep", f"Entire-Checkpoint: {checkpoint}"]
    done = subprocess.run(["git", "-C", repository, *asked], capture_output=True, check=True)
    lines = (line.partition(" ") for line in done.stdout.decode().splitlines())
    return [commit for commit, _, subject in lines if not subject.startswith("Checkpoint:")]


def changed(replay: Replay) -> dict[str, Content]:
    """Files at the end that calls changed, by path in the repository."""
    end = replay.at(len(replay.calls))
    paths = replay.changed(0, len(replay.calls) - 1) & end.keys()
    files = {replay.relative(path): end[path] for path in paths}
    worktree = ".worktrees/"
    return {
        path.split("/", 2)[-1] if path.startswith(worktree) else path: content
        for path, content in files.items()
        if path
    }


def main() -> None:
    """Print one line per session and the sum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("repository", type=Path)
    arguments = parser.parse_args()
    total = Fidelity()
    for metadata in sorted(arguments.folder.glob("*.meta.json")):
        checkpoint = json.loads(metadata.read_text())["checkpoint_id"]
        named = commits(arguments.repository, checkpoint)
        log = metadata.with_name(metadata.name.replace(".meta.json", ".jsonl"))
        for session in read_file(log):
            if not named:
                print(f"{log.name}: no commit names checkpoint {checkpoint}")
                continue
            found = against_git(changed(Replay(session)), arguments.repository, named[-1])
            total.merge(found)
            print(f"{log.name}: {found.share() or 0:.2%}", *found.wrong)
    for kind, number in total.files.items():
        share = total.right[kind] / total.bytes[kind]
        print(f"{kind}: {total.equal[kind]} of {number} files equal, {share:.2%} of bytes")
    print(f"all: {total.share() or 0:.2%} of {sum(total.bytes.values()):,} bytes")


if __name__ == "__main__":
    main()
