"""Several processes that share an update: the same weights as one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.errors import LearnerError
from harness_adapters.learner import checkpoint
from harness_adapters.learner.client import LearnerClient, UpdateResult
from harness_adapters.learner.learner import Learner
from harness_adapters.learner.losses import TokenStatistics
from harness_adapters.learner.ranks import shares
from harness_adapters.learner.trie import distinct_tokens
from harness_adapters.records import Rollout
from harness_adapters.store import Store

from .builders import forked_rows, save_tiny
from .test_learner import settings, some_rollouts


def test_shares_are_whole_rollouts_of_about_equal_size() -> None:
    rows = forked_rows(0)
    for count in (1, 2, 3):
        parts = shares(rows, count)
        assert len(parts) == count
        assert sorted(r for part in parts for r in part) == sorted({row.rollout for row in rows})
        sizes = [distinct_tokens([r for r in rows if r.rollout in part]) for part in parts]
        assert max(sizes) < 0.75 * sum(sizes) or count == 1
    assert shares([], 2) == [set(), set()]
    lone = [row for row in rows if row.rollout == rows[0].rollout]
    assert sorted(map(len, shares(lone, 3))) == [0, 0, 1]


def test_statistics_of_parts_add_up() -> None:
    values = torch.randn(10, generator=torch.Generator().manual_seed(0))
    whole, parts = TokenStatistics(), [TokenStatistics() for _ in range(3)]
    whole.add({"ratio": values})
    parts[0].add({"ratio": values[:4]})
    parts[2].add({"ratio": values[4:]})
    total = TokenStatistics.sum_of(parts)
    assert total.sums["ratio"] == pytest.approx(whole.sums["ratio"], abs=1e-6)
    assert (total.minima, total.maxima) == (whole.minima, whole.maxima)


def prepared(run: Path, chosen: Settings, rollouts: Iterable[Rollout]) -> Path:
    store = Store(run)
    for rollout in rollouts:
        store.add(rollout)
    store.close()
    (run / "config.toml").write_text(config.dump(chosen))
    return run


def first_moment(run: Path) -> list[torch.Tensor]:
    """A tenth of the first step's clipped gradient: what AdamW keeps of it."""
    state = checkpoint.latest(run / "checkpoints/pi")
    assert state is not None
    return [moment["exp_avg"] for _, moment in sorted(state.optimizer["state"].items())]


def test_two_processes_have_the_gradients_of_one(tmp_path: Path) -> None:
    """With what needs whole rollouts beforehand: gspo's ratios and the base of the brake."""
    model_dir = save_tiny(tmp_path / "model")
    chosen = settings(loss="gspo", beta=0.2, processes=2)
    alone = Learner(tmp_path / "alone", "pi", model_dir, chosen)
    expected = alone.update(1, some_rollouts(1))
    run = prepared(tmp_path / "run", chosen, some_rollouts(1))

    async def together() -> UpdateResult:
        learner = await LearnerClient.start(run, "pi", model_dir)
        try:
            found = await learner.update(1, [rollout.id for rollout in some_rollouts(1)])
            assert (await learner.logprobs([([1, 2, 3], [4, 5])], found.path))[0]
            return found
        finally:
            await learner.close()

    found = asyncio.run(together())
    for one, other in zip(first_moment(tmp_path / "alone"), first_moment(run), strict=True):
        assert (one - other).abs().max() <= 1e-5 * one.abs().max()
    for name in ("loss", "kl", "kl_base", "grad_norm", "entropy", "tokens/trained"):
        assert found.metrics[name] == pytest.approx(expected.metrics[name], rel=1e-4, abs=1e-7)
    assert found.metrics["tokens/distinct"] == expected.metrics["tokens/distinct"]
    assert found.adapter == "pi-v1"
    assert load_file(found.path / "adapter_model.safetensors")


@pytest.mark.heavy  # four processes that load torch
def test_a_lost_process_ends_the_learner_and_the_checkpoint_stays(tmp_path: Path) -> None:
    model_dir = save_tiny(tmp_path / "model")
    both = [*some_rollouts(1), *some_rollouts(2)]
    run = prepared(tmp_path / "run", settings(processes=2), both)

    async def lose_one() -> None:
        learner = await LearnerClient.start(run, "pi", model_dir)
        await learner.update(1, [r.id for r in some_rollouts(1)])
        leader = learner._process.pid
        (other,) = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
        os.kill(int(other), signal.SIGKILL)
        with pytest.raises(LearnerError, match="another learner process ended"):
            await learner.update(2, [r.id for r in some_rollouts(2)])
        again = await LearnerClient.start(run, "pi", model_dir)
        try:
            assert (await again.update(2, [r.id for r in some_rollouts(2)])).adapter == "pi-v2"
        finally:
            await again.close()

    asyncio.run(lose_one())
