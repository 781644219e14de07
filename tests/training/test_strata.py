"""How hard each task is: sessions counted, topped up where they all ended alike, never repeated."""

import json
import shutil
from pathlib import Path

import pytest

from harness_adapters.config import Settings
from harness_adapters.progress import Quiet
from harness_adapters.records import Phase
from harness_adapters.tasks.dataset import task_hash
from harness_adapters.training.run import open_run
from harness_adapters.training.strata import Bucket, bucket_of, stratify


@pytest.mark.parametrize(
    ("solved", "sessions", "bucket"),
    [
        (0, 4, Bucket.NEVER),
        (0, 0, Bucket.NEVER),
        (1, 4, Bucket.RARELY),
        (2, 4, Bucket.SOMETIMES),
        (3, 4, Bucket.MOSTLY),
        (16, 16, Bucket.ALWAYS),
    ],
)
def test_buckets(solved: int, sessions: int, bucket: Bucket) -> None:
    assert bucket_of(solved, sessions) is bucket


async def test_tasks_that_end_alike_are_played_more_often(
    small: Settings, coins: Path, tmp_path: Path
) -> None:
    for name in ("train-2", "train-3", "train-4", "train-5", "validation-1", "test-1"):
        shutil.rmtree(coins / f"coin-{name}")
    never = coins / "coin-train-0" / "tests" / "test.sh"
    never.write_text("#!/bin/bash\necho 0 > /logs/verifier/reward.txt\n")
    run = open_run(tmp_path / "run", small, resume=False)
    found = await stratify(run, Quiet(), attempts=1, most=2)
    by_task = {one.task: one for one in found}
    assert set(by_task) == {task.id for task in run.dataset.tasks}
    hopeless = by_task["coin-train-0"]
    assert (hopeless.solved, hopeless.sessions, hopeless.bucket) == (0, 2, Bucket.NEVER)
    assert hopeless.low == 0 and 0.5 < hopeless.high < 1
    for one in found:
        assert one.sessions == 2  # one session always ends as it ends
        assert (one.harness, one.model) == ("pi", small.model.path)
    tasks = {task.id: task for task in run.dataset.tasks}
    assert hopeless.sha256 == task_hash(tasks["coin-train-0"])
    rows = [json.loads(line) for line in (run.root / "strata.jsonl").read_text().splitlines()]
    assert [row["task"] for row in rows] == [one.task for one in found]
    played = run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
    assert await stratify(run, Quiet(), attempts=1, most=2) == found
    assert len(run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)) == len(played)
    run.close()
