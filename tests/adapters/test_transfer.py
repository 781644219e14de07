"""Matrices on real parts, small: real pi, a second agent, sandboxes, a tiny real model."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from harness.test_toml_driver import PLAIN
from harness_adapters.adapters.transfer import Request, default_root, open_evaluation, play
from harness_adapters.errors import ConfigError, ModelError, StoreError, TaskError
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.report.page import write_report
from harness_adapters.store import Store


def plain_agent(folder: Path) -> Path:
    """A second harness: a file and its agent."""
    agent = Path(__file__).parents[1] / "harness" / "plain_agent.py"
    folder.mkdir()
    shutil.copy(agent, folder)
    (folder / "plain.toml").write_text(PLAIN)
    return folder / "plain.toml"


async def test_adapters_in_harnesses_become_a_matrix(
    trained: Path, stray: Path, fresh: Path, tmp_path: Path
) -> None:
    harness = plain_agent(tmp_path / "plain")
    request = Request(["base", str(trained), str(stray)], ["pi", str(harness)], fresh)
    evaluation = open_evaluation(tmp_path / "matrix", request, Quiet())
    matrix = await play(evaluation, Quiet())
    rollouts = evaluation.run.store.rollouts(phase=Phase.TEST, turns=False)
    evaluation.run.close()
    assert matrix.plan.sessions == matrix.scored == len(rollouts) == 3 * 2 * 3
    assert set(Counter((r.arm, r.harness) for r in rollouts).values()) == {3}
    assert [(c.arm, c.harness, c.trained_here) for c in matrix.cells] == [
        ("pi-v2", "pi", True),
        ("pi-v2", "plain", False),
        ("stray", "pi", False),
        ("stray", "plain", False),
    ]
    assert all(c.comparison is not None and c.comparison.pairs == 3 for c in matrix.cells)
    # The whole dataset is new to the one that is known; of the other nothing can be said.
    assert [arm.unseen for arm in matrix.plan.others] == [["fresh"], []]
    assert [arm.checked for arm in matrix.plan.others] == [True, False]
    assert "Transfer" in write_report(tmp_path / "matrix").read_text()

    again = open_evaluation(tmp_path / "matrix", Request.of(tmp_path / "matrix"), Quiet())
    await play(again, Quiet())
    assert len(again.run.store.rollouts(phase=Phase.TEST, turns=False)) == len(rollouts)
    again.run.close()


@pytest.mark.heavy
@pytest.mark.timeout(1200)  # four starts of an engine
def test_three_kills_lose_and_repeat_nothing(trained: Path, fresh: Path, tmp_path: Path) -> None:
    root = tmp_path / "killed"
    command = [
        *(sys.executable, "-c", "from harness_adapters.cli.main import main; main()"),
        *("eval", str(root)),
        *("--adapters", f"base,{trained}", "--tasks", str(fresh), "--attempts", "2"),
    ]
    for least in (2, 5, 8):
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        kept = sessions(root)
        while len(sessions(root)) < least and process.poll() is None:
            time.sleep(0.05)
        assert process.poll() is None, (tmp_path / "log").read_text()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert kept.keys() <= sessions(root).keys()
    kept = sessions(root)
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pass@1 on 3 held-out tasks" in done.stdout
    after = sessions(root)
    assert kept.keys() <= after.keys()
    assert len(after) == len(set(after.values())) == 2 * 3 * 2


def sessions(root: Path) -> dict[str, tuple[str, str, int]]:
    """Id -> arm, task, attempt."""
    if not (root / "run.sqlite").is_file():
        return {}
    store = Store(root)
    try:
        rollouts = store.rollouts(phase=Phase.TEST, turns=False)
    finally:
        store.close()
    return {r.id: (r.arm, r.task, r.attempt) for r in rollouts}


def test_tasks_of_the_training_are_refused(trained: Path, coins: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved" / "new-name"
    shutil.copytree(coins / "coin-train-1", moved)
    task = moved / "task.toml"
    task.write_text(task.read_text().replace("train", "test"))
    with pytest.raises(TaskError, match="train task coin-train-1 of adapter pi-v2 has the same"):
        open_evaluation(
            tmp_path / "eval", Request(["base", str(trained)], [], moved.parent), Quiet()
        )


def test_other_budgets_than_in_training_are_refused(trained: Path, tmp_path: Path) -> None:
    request = Request(["base", str(trained)], changes=["budget.max_turns=9"])
    with pytest.raises(ConfigError, match=r"budget\.max_turns is 9, but pi-v2 was trained with 2"):
        open_evaluation(tmp_path / "eval", request, Quiet())
    assert not (tmp_path / "eval").exists()


def test_an_evaluation_never_writes_into_a_training_run(trained: Path) -> None:
    with pytest.raises(StoreError, match="holds a training run"):
        open_evaluation(trained, Request(["base", str(trained)]), Quiet())


@pytest.mark.parametrize(
    ("adapters", "message"),
    [
        (["base"], "name an adapter beside base"),
        (["base", "nowhere"], "nowhere: neither a PEFT adapter directory"),
    ],
)
def test_what_is_no_comparison_is_refused(
    adapters: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises((ConfigError, ModelError), match=message):
        open_evaluation(tmp_path / "eval", Request(adapters), Quiet())


def test_the_same_request_finds_its_directory_again(trained: Path) -> None:
    one = Request(["base", str(trained)], ["pi"])
    assert default_root(one) == default_root(Request(["base", str(trained)], ["pi"], tasks=9))
    assert default_root(one) != default_root(Request(["base", str(trained)], ["hermes"]))
