"""Playing a sweep: train the cells that aren't trained, then evaluate them, the base once for all.

Everything goes on where a kill left it: a cell by its run directory, an evaluation by its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from harness_adapters.adapters.transfer import REQUEST, Request, open_evaluation, play
from harness_adapters.engine import BASE
from harness_adapters.errors import HarnessAdaptersError, Interrupted, StoreError
from harness_adapters.progress import Reporter
from harness_adapters.sweep.directory import Sweep
from harness_adapters.sweep.grid import Cell
from harness_adapters.training.pipeline import best_adapter, is_trained, train_run
from harness_adapters.training.run import Run, open_run

ARMS = "cells"
"""Fact of an evaluation: cell -> label of its adapter."""


async def play_sweep(sweep: Sweep, reporter: Reporter) -> list[Path]:
    """Train and evaluate what is missing; the evaluations' directories.

    A cell whose training fails is written down and left out, so that the others go on; the next
    call tries it again.
    """
    groups: dict[str, list[Cell]] = {}
    for number, cell in enumerate(sweep.cells, 1):
        reporter.say(f"cell {number} of {len(sweep.cells)}: {cell.name}")
        try:
            key = await _train(sweep, cell, reporter)
        except Interrupted:
            raise
        except HarnessAdaptersError as error:
            sweep.note_stop(cell, str(error))
            reporter.say(f"{cell.name}: stopped: {error}")
        else:
            sweep.note_stop(cell, None)
            groups.setdefault(key, []).append(cell)
    places = []
    for key, members in groups.items():
        place = sweep.root / "evaluations" / key
        await _evaluate(sweep, place, members, reporter)
        places.append(place)
    return places


async def _train(sweep: Sweep, cell: Cell, reporter: Reporter) -> str:
    """Train a cell to its end; the key of the evaluation that it belongs to."""
    run = open_run(sweep.place(cell), cell.settings, resume=True)
    try:
        if is_trained(run, run.settings.train.steps):
            best_adapter(run)
        else:
            # An engine of its own: cells name their adapters alike, and an engine that has seen a
            # name once may answer from its cache.
            await train_run(run, reporter)
        return _company(run)
    finally:
        run.close()


def _company(run: Run) -> str:
    """Twelve hex digits of all that sessions depend on beside the adapter.

    Cells that share it are evaluated together: one engine, one base, interleaved in time.
    """
    chosen = run.settings
    sections = ("model", "harness", "guard", "budget")
    parts = {name: getattr(chosen, name).model_dump() for name in sections}
    parts["base"] = run.store.fact("model_dir")
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


async def _evaluate(sweep: Sweep, place: Path, members: Sequence[Cell], reporter: Reporter) -> None:
    """The base and the members' adapters on the same tasks."""
    settings = members[0].settings
    changes = [f"eval.{key}={value}" for key, value in settings.eval.model_dump().items()]
    changes.append(f"concurrency={settings.concurrency}")
    homes = {str(sweep.place(cell).absolute()): cell for cell in members}
    request = Request([BASE, *_in_order(place, list(homes))], changes=changes)
    evaluation = open_evaluation(place, request, reporter)
    try:
        labels = {
            homes[str(adapter.path.parent.parent)].name: label
            for label, adapter in evaluation.adapters.items()
        }
        evaluation.run.store.set_fact(ARMS, labels)
        reporter.say(f"held-out tasks, played by the base and {', '.join(labels)}")
        await play(evaluation, reporter)
    finally:
        evaluation.run.close()


def _in_order(place: Path, homes: Sequence[str]) -> list[str]:
    """Those that were there before first: the evaluation goes on from its first adapter's run."""
    if not (place / REQUEST).is_file():
        return list(homes)
    try:
        before = [one for one in Request.of(place).adapters if one in homes]
    except StoreError:
        return list(homes)
    return [*before, *(one for one in homes if one not in before)]
