"""What a task's check may take: time of the processor, however busy the machine is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

PACKAGE = resources.files("harness_adapters")
SCRIPT = """\
import sys
from pathlib import Path
import confined_command
confined_command._PATIENCE = int(sys.argv[2])
done = confined_command.run(Path("work"), "scratch", ["python3", "-c", sys.argv[1]], "", 1.0)
print(done.returncode, done.cpu_seconds >= 0.5, done.problem)
"""


@pytest.mark.parametrize(
    ("program", "patience", "said"),
    [
        ("pass", 60, "0 False "),
        ("while True: pass", 60, "-24 True still running after 1 seconds of the processor"),
        ("import time; time.sleep(60)", 3, "-9 False still running after 3 seconds"),
    ],
)
def test_a_check_is_stopped_by_the_time_it_uses(
    program: str, patience: int, said: str, tmp_path: Path
) -> None:
    for name in ("synthesis/checkers/confined_command.py", "tasks/starter/checkers/confined.py"):
        shutil.copy(str(PACKAGE.joinpath(name)), tmp_path)
    (tmp_path / "work").mkdir()
    (tmp_path / "scratch").mkdir()
    argv = [sys.executable, "-c", SCRIPT, program, str(patience)]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.removesuffix("\n") == said
