"""The protocol with a real process."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from harness_adapters import config
from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import LearnerError
from harness_adapters.learner.client import LearnerClient, warm_start_in_process
from harness_adapters.records import Phase
from harness_adapters.store import Store

from .builders import rollout, save_tiny, turn


@pytest.fixture
def run(tmp_path: Path) -> Path:
    save_tiny(tmp_path / "model")
    folder = tmp_path / "run"
    store = Store(folder)
    for number, token in enumerate((10, 20, 30, 40)):
        phases = ((Phase.TRAIN, "r"), (Phase.DEMONSTRATION, "d"))
        for phase, letter in phases:
            good = number % 2 == 0
            store.add(
                rollout(
                    f"{letter}{number}", [turn([1, 2, 3], [token, token + 1], logprobs=[-4.6] * 2)],
                    reward=float(good), correct=good, phase=phase,
                )
            )  # fmt: skip
    store.close()
    settings = config.load(None, ["model.dtype=float32", "lora.rank=4", "train.ratio_max=1e9"])
    (folder / "config.toml").write_text(config.dump(settings))
    return folder


async def test_publish_update_logprobs_close_and_continue(run: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    client = await LearnerClient.start(run, "pi", model)
    first = await client.publish()
    assert (first.name, first.version) == ("pi-v0", 0)
    pair = ([1, 2, 3], [10, 11])
    base, untrained = await client.logprobs([pair]), await client.logprobs([pair], first.path)
    assert base == untrained
    result = await client.update(1, ["r0", "r1", "r2", "r3"])
    assert (result.adapter, result.version) == ("pi-v1", 1)
    assert result.path == run / "adapters" / "pi-v1"
    assert result.metrics["reward"] == 0.5
    trained = await client.logprobs([pair], result.path)
    assert sum(trained[0]) > sum(base[0])
    with pytest.raises(LearnerError, match="step 2: the run has no rollout nobody"):
        await client.update(2, ["r0", "nobody"])
    os.kill(client._process.pid, signal.SIGKILL)
    with pytest.raises(LearnerError, match="ended with status -9"):
        await client.publish()
    await client.close()

    client = await LearnerClient.start(run, "pi", model)
    assert (client.step, client.version) == (1, 1)
    assert await client.update(1, ["r0", "r1", "r2", "r3"]) == result
    await client.close()
    assert client._process.returncode == 0


async def test_a_learner_that_cannot_start_says_why(run: Path, tmp_path: Path) -> None:
    with pytest.raises(LearnerError, match=r"nowhere is not a model directory"):
        await LearnerClient.start(run, "pi", tmp_path / "nowhere")


async def test_damaged_requests_do_not_end_the_process(run: Path, tmp_path: Path) -> None:
    client = await LearnerClient.start(run, "pi", tmp_path / "model")
    for request in ({"op": "dance"}, {"op": "update"}, {"op": "logprobs", "pairs": [[[], [1]]]}):
        with pytest.raises(LearnerError):
            await client._ask(request)
    results = await asyncio.gather(client.publish(), client.publish())
    assert results[0] == results[1]
    await client.close()


async def test_a_warm_start_in_its_own_process(run: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, float]] = []
    out = tmp_path / "warm"
    settings = WarmStartSettings(steps=3)
    result = await warm_start_in_process(
        run, tmp_path / "model", out, settings=settings, rollout_ids=["d0", "d2"],
        threads=1, save_at=[2], on_step=lambda *step: seen.append(step),
    )  # fmt: skip
    assert seen == list(enumerate(result["losses"], 1))
    assert result["demonstrations"] == 2
    assert len(result["losses"]) == 3
    assert result["losses"][0] > result["losses"][-1]
    assert Path(result["path"]) == out
    assert (tmp_path / "warm-s2" / "model.safetensors").is_file()
    with pytest.raises(LearnerError, match="not a model directory"):
        await warm_start_in_process(
            run, tmp_path / "nowhere", out, settings=settings, rollout_ids=["d0"]
        )


async def test_a_cancelled_request_ends_the_process(run: Path, tmp_path: Path) -> None:
    client = await LearnerClient.start(run, "pi", tmp_path / "model")
    request = asyncio.create_task(client.update(1, ["r0", "r1"]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    with pytest.raises(LearnerError, match="ended with status -9"):
        await client.publish()
    await client.close()
