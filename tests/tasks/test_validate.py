"""Real sandboxes, the real verifier call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.tasks import app
from harness_adapters.paths import scratch_dir
from harness_adapters.tasks import load_dataset
from harness_adapters.tasks.starter import write
from harness_adapters.tasks.validate import TaskReport, validate
from tasks.support import make_task

GOOD = "grep -qx 7 answer.txt; echo $((1 - ($? > 0))) > /logs/verifier/reward.txt"
# One family for each checker: number, lines, answer, files, Python functions, programs.
FAMILIES = ["csv_sum", "sort_lines", "fact_qa", "move_files", "fix_bug", "write_script"]


async def test_starter_tasks_are_sound(tmp_path: Path) -> None:
    dataset = write(tmp_path / "a", train=0, validation=0, test=6, families=FAMILIES, levels=[3])
    seen: list[TaskReport] = []
    reports = await validate(dataset, jobs=2, progress=seen.append)
    assert [report.task.id for report in reports] == [task.id for task in dataset.tasks]
    assert {report.task.id: report.problems for report in reports if not report.ok} == {}
    assert len(seen) == 6 and all(report.attempts >= 5 for report in reports)


@pytest.mark.heavy
async def test_the_whole_suite_is_sound(tmp_path: Path) -> None:
    dataset = write(tmp_path / "a", train=0, validation=0, test=180, seed=7)
    reports = await validate(dataset, jobs=4)
    assert {report.task.id: report.problems for report in reports if not report.ok} == {}


@pytest.mark.parametrize(
    ("test", "says"),
    [
        ("echo 1 > /logs/verifier/reward.txt", "nothing done: scored 1 instead of 0"),
        ("true", "no reward"),
        (
            "[ -s answer.txt ]; echo $((1 - ($? > 0))) > /logs/verifier/reward.txt",
            "the guess 0: scored 1",
        ),
        (
            "[ -e answer.txt ]; echo $((1 - ($? > 0))) > /logs/verifier/reward.txt",
            "empty files: scored",
        ),
        (
            "grep -q 7 answer.txt; echo $((1 - ($? > 0))) > /logs/verifier/reward.txt",
            "all input as output",
        ),
        ("echo 0 > /logs/verifier/reward.txt", "the oracle (solve.sh): scored 0 instead of 1"),
        (f"{GOOD}; [ -e conftest.py ] && python3 conftest.py; true", "a forged reward: scored 1"),
    ],
)
async def test_unsound_verifiers_are_found(tmp_path: Path, test: str, says: str) -> None:
    make_task(tmp_path / "a", test=test)
    [report] = await validate(load_dataset(tmp_path))
    assert any(says in problem for problem in report.problems), report.problems


async def test_a_task_without_files_of_its_own_is_validated(tmp_path: Path) -> None:
    root = make_task(tmp_path / "a", test=GOOD)
    (root / "environment" / "files" / "notes.txt").unlink()
    (root / "environment" / "files").rmdir()
    [report] = await validate(load_dataset(tmp_path))
    assert report.ok and report.attempts > 3, report.problems
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_a_task_needs_an_oracle(tmp_path: Path) -> None:
    (make_task(tmp_path / "a", test=GOOD) / "solution" / "solve.sh").unlink()
    [report] = await validate(load_dataset(tmp_path))
    assert report.problems == (
        "no solution/solve.sh, so nothing shows that the task can be solved",
    )


def test_command_line(tmp_path: Path) -> None:
    run = CliRunner().invoke
    out = str(tmp_path / "suite")
    written = run(
        app, ["starter", "--out", out, "--train", "1", "--validation", "0", "--test", "1"]
    )
    assert written.exit_code == 0 and "2 tasks in" in written.output
    checked = run(app, ["validate", out])
    assert checked.exit_code == 0 and "2 of 2 tasks are sound" in checked.output
    make_task(tmp_path / "suite" / "bad")
    failed = run(app, ["validate", out])
    assert failed.exit_code == 1 and "bad" in failed.output and "2 of 3" in failed.output
