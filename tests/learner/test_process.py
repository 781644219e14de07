"""The protocol with a real process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_adapters import config
from harness_adapters.config import WarmStartSettings
from harness_adapters.errors import LearnerError
from harness_adapters.learner.client import LearnerClient, warm_start_in_process
from harness_adapters.learner.warm_start import warm_start
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
    with pytest.raises(LearnerError, match="the run has no rollout nobody"):
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


async def test_a_warm_start_keeps_the_given_order(run: Path, tmp_path: Path) -> None:
    """The store gives rollouts by start time and id; batches are drawn from the order asked for."""
    settings = WarmStartSettings(steps=2, batch=1)
    store = Store.existing(run)
    orders = [["d0", "d2", "d3"], ["d3", "d0", "d2"]]
    expected = []
    for ids in orders:
        by_id = {rollout.id: rollout for rollout in store.rollouts(ids=ids)}
        result = warm_start(
            tmp_path / "model", [by_id[i] for i in ids], settings, tmp_path / "here",
            dtype="float32",
        )  # fmt: skip
        expected.append(result.losses)
    store.close()
    assert expected[0] != expected[1]
    for ids, losses in zip(orders, expected, strict=True):
        found = await warm_start_in_process(
            run, tmp_path / "model", tmp_path / "out", settings=settings, rollout_ids=ids,
            threads=1, dtype="float32",
        )  # fmt: skip
        assert found["losses"] == pytest.approx(losses, abs=1e-6)
    with pytest.raises(LearnerError, match="the run has no rollout nobody"):
        await warm_start_in_process(
            run, tmp_path / "model", tmp_path / "out", settings=settings,
            rollout_ids=["d0", "nobody"], threads=1,
        )  # fmt: skip


async def test_a_warm_start_takes_type_and_device_from_the_request(
    run: Path, tmp_path: Path
) -> None:
    """Not from the run's config.toml (float32 here)."""
    for dtype in ("bfloat16", "float32"):
        result = await warm_start_in_process(
            run, tmp_path / "model", tmp_path / dtype, settings=WarmStartSettings(steps=1),
            rollout_ids=["d0"], threads=1, dtype=dtype, token_budget=64,
        )  # fmt: skip
        config = json.loads(Path(result["path"], "config.json").read_text())
        assert config["dtype"] == dtype
    with pytest.raises(LearnerError, match="device 'nonsense'"):
        await warm_start_in_process(
            run, tmp_path / "model", tmp_path / "out", settings=WarmStartSettings(steps=1),
            rollout_ids=["d0"], threads=1, device="nonsense",
        )  # fmt: skip


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


PARENT = """
import asyncio, os, sys
from pathlib import Path
from harness_adapters.config import WarmStartSettings
from harness_adapters.learner import client

run, model = Path(sys.argv[1]), Path(sys.argv[2])
create = asyncio.create_subprocess_exec

async def told(*command, **options):
    global process
    process = await create(*command, **options)
    return process

def ready(*_):
    print(process.pid, flush=True)

async def learner():
    await client.LearnerClient.start(run, "pi", model)
    ready()
    await asyncio.sleep(600)

async def warm_start():
    await client.warm_start_in_process(
        run, model, run / "out", settings=WarmStartSettings(steps=10_000), rollout_ids=["d0"],
        on_step=ready, threads=1,
    )

client.asyncio.create_subprocess_exec = told
asyncio.run(globals()[sys.argv[3]]())
"""


@pytest.mark.parametrize("what", ["learner", "warm_start"])
async def test_processes_end_when_their_parent_is_killed(
    run: Path, tmp_path: Path, what: str
) -> None:
    """Stopped, so that it can notice neither the end of its input nor that nobody reads it."""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, str(run), str(tmp_path / "model"), what,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert parent.stdout is not None
    child = int(await parent.stdout.readline())
    try:
        os.kill(child, signal.SIGSTOP)
        assert alive(child)
        parent.kill()
        await parent.wait()
        for _ in range(100):
            if not alive(child):
                break
            await asyncio.sleep(0.05)
        assert not alive(child)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("module", ["learner", "learner.warm_start_process"])
def test_a_process_whose_parent_is_gone_already_does_not_start(run: Path, module: str) -> None:
    arguments = [str(run), "--harness", "pi"] if module == "learner" else []
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = subprocess.run(
        [
            sys.executable, "-m", f"harness_adapters.{module}", *arguments,
            "--parent", str(gone.pid),
        ],
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == f"the process {gone.pid} that wanted this one is gone\n"


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
