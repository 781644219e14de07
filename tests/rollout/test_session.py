"""Whole sessions: real pi, real sandbox, a scripted model, the real verifier."""

from pathlib import Path

import pytest

from harness_adapters.config import GuardSettings, Settings
from harness_adapters.errors import EngineError
from harness_adapters.gateway.scripted import ScriptedEngine
from harness_adapters.records import Phase, Rollout, SessionEnd
from harness_adapters.rollout.demonstrations import Oracle, demonstration_plan, spread
from harness_adapters.rollout.pool import GIVE_UP_AFTER, Pool
from harness_adapters.rollout.session import SessionPlan, SessionRunner
from harness_adapters.rollout.stack import make_runner
from harness_adapters.store import Store
from harness_adapters.tasks import Task, load_task, starter
from harness_adapters.tasks.task import Split


def write_tasks(place: Path, *names: str) -> list[Task]:
    """One task of level 1 for each family name, as the starter suite writes it."""
    tasks = []
    for number, name in enumerate(names):
        root = place / f"{name}-{number}"
        starter.write_task(
            root, starter.draft(name, 1, 77 + number), Split.TRAIN, name, 1, 77 + number
        )
        tasks.append(load_task(root))
    return tasks


def plan(task: Task, attempt: int = 0) -> SessionPlan:
    return SessionPlan(
        task=task, phase=Phase.TRAIN, arm="pi", adapter="base", version=0, group=task.id,
        attempt=attempt, step=0, temperature=1.0,
    )  # fmt: skip


async def test_an_oracle_session_is_solved_scored_and_kept_whole(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    chat = runner.gateway.chat
    (task,) = write_tasks(tmp_path, "sort_lines")
    rollout = await Oracle(runner, engine, chat).run(demonstration_plan(task))
    assert (rollout.score, rollout.correct, rollout.end) == (1.0, True, SessionEnd.FINISHED)
    assert rollout.calls == len(task.oracle)
    assert rollout.reward == pytest.approx(1 + 0.1 * (1 - rollout.calls / 15))
    assert len(rollout.turns) == rollout.calls + 1
    first, second = rollout.turns[:2]
    row = first.prompt_ids + first.output_ids
    assert second.prompt_ids[: len(row)] == row, "pi's history extends what was sampled"
    assert task.instruction.strip() in first.new_messages[-1]["content"]
    store = Store(tmp_path / "run")
    store.add(rollout)
    assert store.rollouts() == [rollout]
    store.close()


async def test_doing_nothing_scores_nothing(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    (task,) = write_tasks(tmp_path, "write_text")
    engine.script("idle", ["Done."])
    rollout = await runner.run(plan(task), session="idle")
    assert (rollout.score, rollout.reward, rollout.correct) == (0.0, 0.0, False)
    assert rollout.calls == 0 and rollout.end is SessionEnd.FINISHED


async def test_tests_and_solution_are_not_in_the_agents_sandbox(
    runner: SessionRunner, engine: ScriptedEngine, settings: Settings, tmp_path: Path
) -> None:
    """The guard would not let it look; here it may."""
    unguarded = settings.model_copy(update={"guard": GuardSettings(policy="off")})
    audit = tmp_path / "unguarded.jsonl"
    runner = make_runner(engine, runner.gateway.chat, runner.harness, unguarded, audit)
    (task,) = write_tasks(tmp_path, "write_text")
    look = "ls /tests /solution /logs; find / -name 'expected.json' -o -name solve.sh 2>/dev/null"
    call = runner.gateway.chat.write_call("bash", f'{{"command": "{look}"}}')
    engine.script("spy", [call, "Done."])
    rollout = await runner.run(plan(task), session="spy")
    seen = rollout.turns[1].new_messages[-1]["content"]
    assert seen.count("No such file or directory") == 3
    assert "expected.json" not in seen and "solve.sh" not in seen


async def test_an_endless_agent_ends_at_the_budget(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    (task,) = write_tasks(tmp_path, "write_text")
    call = runner.gateway.chat.write_call("bash", '{"command": "true"}')
    engine.script("loop", [call] * 50)
    rollout = await runner.run(plan(task), session="loop")
    assert rollout.end is SessionEnd.BUDGET
    assert len(rollout.turns) == runner.budget.max_turns
    assert rollout.score == 0.0


async def test_a_dead_engine_gives_no_reward_not_zero(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    (task,) = write_tasks(tmp_path, "write_text")
    engine.script("dead", [EngineError("the server is gone")])
    rollout = await runner.run(plan(task), session="dead")
    assert (rollout.score, rollout.reward, rollout.correct) == (None, None, None)
    assert rollout.end is SessionEnd.API_ERROR
    assert "the server is gone" in rollout.error


class Flaky:
    """Runs that fail a given number of times before they have a score."""

    def __init__(self, runner: SessionRunner, engine: ScriptedEngine, failures: int) -> None:
        self.runner, self.engine, self.left = runner, engine, failures

    async def run(self, plan: SessionPlan) -> Rollout:
        session = f"flaky-{self.left}-{plan.attempt}"
        broken = self.left > 0
        self.left -= broken
        self.engine.script(session, [EngineError("gone") if broken else "Done."])
        return await self.runner.run(plan, session=session)


async def test_the_pool_repeats_infrastructure_failures(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    (task,) = write_tasks(tmp_path, "write_text")
    kept: list[Rollout] = []
    pool = Pool(Flaky(runner, engine, 2), 1, kept.append)
    (rollout,) = await pool.run([plan(task)])
    assert rollout.score == 0.0
    assert kept == [rollout]


async def test_the_pool_gives_up_on_a_broken_machine(
    runner: SessionRunner, engine: ScriptedEngine, tmp_path: Path
) -> None:
    (task,) = write_tasks(tmp_path, "write_text")
    pool = Pool(Flaky(runner, engine, 10_000), 2, lambda rollout: None)
    with pytest.raises(EngineError, match=f"{GIVE_UP_AFTER} sessions in a row"):
        await pool.run([plan(task, attempt) for attempt in range(30)])


def test_spread_takes_every_kind_before_any_twice(tmp_path: Path) -> None:
    names = ["sort_lines"] * 5 + ["write_text"] * 3 + ["add_function"]
    tasks = write_tasks(tmp_path, *names)
    assert {task.family for task in spread(tasks, 3)} == set(names)
    assert len(spread(tasks, 100)) == len(names)
    assert spread(tasks, 4) == spread(list(reversed(tasks)), 4)
