"""How hard each kind of task is for the base, and which kinds a run learns from.

A group of rollouts teaches only where the base sometimes succeeds and sometimes fails. So the base
plays training tasks first, and a run keeps to the kinds whose pass rate lies nearest one half.
Held-out tasks are never looked at for this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness_adapters.engine import BASE
from harness_adapters.errors import TaskError
from harness_adapters.progress import Reporter
from harness_adapters.records import Phase, Rollout
from harness_adapters.rollout.pool import Pool
from harness_adapters.rollout.session import SessionPlan
from harness_adapters.rollout.stack import Stack
from harness_adapters.tasks import Split, Task
from harness_adapters.training.run import Run


@dataclass(frozen=True, slots=True)
class Difficulty:
    """What the base did on the training tasks of one kind."""

    kind: str
    """`family/level`."""
    solved: int
    sessions: int
    """Those with a verdict."""
    calls: float
    """Mean tool calls of a session."""

    @property
    def pass_rate(self) -> float:
        """In [0, 1]; 0 without sessions."""
        return self.solved / self.sessions if self.sessions else 0.0


async def play(
    run: Run, stack: Stack, reporter: Reporter, *, attempts: int, temperature: float
) -> list[Rollout]:
    """`attempts` sessions of each kind of the training split, played by the base on `stack`.

    Over as many tasks of a kind as there are. Sessions that the run directory holds are not played
    again. Raises TaskError when there is nothing to play.
    """
    tasks = run.dataset.split(Split.TRAIN)
    if not tasks:
        raise TaskError(f"{run.dataset.root}: no task of the train split")
    done = [
        rollout
        for rollout in run.store.rollouts(phase=Phase.DIFFICULTY, turns=False)
        if rollout.temperature == temperature
    ]
    have = {(rollout.task, rollout.attempt) for rollout in done}
    plans = [
        plan
        for plan in _plans(tasks, attempts, temperature)
        if (plan.task.id, plan.attempt) not in have
    ]
    if plans:
        reporter.phase("the base on training tasks", len(plans))
        pool = Pool(stack.runner, run.settings.concurrency, run.store.add, share=stack.share)
        done += await pool.run(plans, lambda _: reporter.advance(1))
    return done


def _plans(tasks: Collection[Task], attempts: int, temperature: float) -> list[SessionPlan]:
    """So many sessions of each kind, its tasks in turn."""
    by_kind: dict[str, list[Task]] = {}
    for task in sorted(tasks, key=lambda task: (task.seed, task.id)):
        by_kind.setdefault(task.kind, []).append(task)
    return [
        SessionPlan(
            task=one[number % len(one)],
            phase=Phase.DIFFICULTY,
            arm=BASE,
            adapter=BASE,
            version=0,
            group=f"difficulty/{kind}",
            attempt=number // len(one),
            step=0,
            temperature=temperature,
        )
        for number in range(attempts)
        for kind, one in sorted(by_kind.items())
    ]


def summarise(rollouts: Iterable[Rollout]) -> list[Difficulty]:
    """By kind, the easiest first."""
    by_kind: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.correct is not None:
            by_kind.setdefault(f"{rollout.family}/{rollout.level}", []).append(rollout)
    found = [
        Difficulty(
            kind,
            solved=sum(bool(rollout.correct) for rollout in played),
            sessions=len(played),
            calls=sum(rollout.calls for rollout in played) / len(played),
        )
        for kind, played in by_kind.items()
    ]
    return sorted(found, key=lambda one: (-one.pass_rate, one.kind))


def nearest_half(found: Iterable[Difficulty], count: int) -> list[str]:
    """The `count` kinds whose pass rates lie nearest one half, by name; of two, the harder one.

    None that was always or never solved, unless that leaves nothing to choose.
    """
    found = list(found)
    mixed = [one for one in found if 0 < one.solved < one.sessions]

    def place(one: Difficulty) -> tuple[float, float, str]:
        return abs(one.pass_rate - 0.5), one.pass_rate, one.kind

    return sorted(one.kind for one in sorted(mixed or found, key=place)[:count])


async def choose_kinds(run: Run, stack: Stack, reporter: Reporter) -> Sequence[str]:
    """What the run trains on, validates and quotes: settled once, by the base on training tasks.

    Nothing is played where `tasks.kinds` says it, or where the dataset has no more kinds than
    `tasks.learnable` asks for.
    """
    if not run.chooses_kinds:
        return run.kinds
    settings = run.settings
    played = await play(
        run,
        stack,
        reporter,
        attempts=settings.tasks.probe,
        temperature=settings.train.temperature,
    )
    found = summarise(played)
    kinds = nearest_half(found, settings.tasks.learnable)
    run.keep_to(kinds)
    rates = [one.pass_rate for one in found if one.kind in kinds]
    reporter.say(
        f"{len(kinds)} of {len(found)} kinds of tasks are trained on: the base solves "
        f"{min(rates):.0%} to {max(rates):.0%} of their sessions"
    )
    return kinds
