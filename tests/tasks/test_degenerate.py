from __future__ import annotations

from pathlib import Path

import pytest

from harness_adapters.tasks import load_task
from harness_adapters.tasks.degenerate import attempts, named_files
from tasks.support import make_task


@pytest.mark.parametrize(
    ("instruction", "names"),
    [
        ("Write it to answer.txt.", ["answer.txt"]),
        ("Move `a.txt` to dir/b.csv, then a.txt.", ["a.txt", "dir/b.csv"]),
        ("Read /app/in/x.json and /etc/passwd.d", ["in/x.json"]),
        ("All *.log files and logs/*.log", []),
        ("Version 1.5 of ../up.txt", []),
        ("The columns are a,b. Stop.", []),
    ],
)
def test_named_files(instruction: str, names: list[str]) -> None:
    assert named_files(instruction, "/app") == names


def test_attempts_differ_and_touch_what_the_instruction_names(tmp_path: Path) -> None:
    task = load_task(make_task(tmp_path / "a"))
    found = {attempt.name: attempt.files for attempt in attempts(task)}
    assert found["every file deleted"] == {}
    assert found["the guess 1"] == {"notes.txt": b"seven\n", "answer.txt": b"1\n"}
    assert found["notes.txt copied to the output"]["answer.txt"] == b"seven\n"
    assert b"reward" in found["a forged reward"]["conftest.py"]
    assert len({str(sorted(files.items())) for files in found.values()}) == len(found)
    assert "scripts that only exit with 0" not in found  # nothing to replace here
