"""How hard each kind of task is for the base, as a command of its own."""

from __future__ import annotations

from harness_adapters.progress import Reporter
from harness_adapters.rollout.stack import open_stack
from harness_adapters.training.kinds import Difficulty, play, summarise
from harness_adapters.training.pipeline import prepare_base
from harness_adapters.training.run import Run


async def measure(
    run: Run, reporter: Reporter, *, attempts: int, temperature: float | None = None
) -> list[Difficulty]:
    """Play `attempts` sessions of each kind of the training split with the run's base.

    At `temperature`, or the training's. Sessions that the run directory holds are not played again.
    Raises TaskError when there is nothing to play.
    """
    if temperature is None:
        temperature = run.settings.train.temperature
    base = await prepare_base(run, reporter)
    async with open_stack(run.settings, base, run_dir=run.root, reporter=reporter) as stack:
        played = await play(run, stack, reporter, attempts=attempts, temperature=temperature)
    return summarise(played)
