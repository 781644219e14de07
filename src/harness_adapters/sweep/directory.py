"""The directory of a sweep: `cells/NAME` and `evaluations/KEY`, and `sweep.json` over both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.errors import StoreError, TaskError
from harness_adapters.harness.registry import get_harness
from harness_adapters.sweep.grid import Axis, Cell, cells
from harness_adapters.tasks.dataset import task_hash
from harness_adapters.training.pipeline import check_tasks, test_tasks
from harness_adapters.training.run import open_run, write_whole

SWEEP = "sweep.json"
"""What marks the directory of a sweep."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What `sweep.json` holds: enough for the report, whatever became of the settings."""

    axes: list[Axis]
    cells: dict[str, dict[str, str]]
    """Name -> key -> value, in the grid's order: the first is what the others are compared with."""
    stopped: dict[str, str] = field(default_factory=dict[str, str])
    """Name -> what ended its training."""

    def write(self, root: Path) -> None:
        """Whole or not at all."""
        write_whole(root / SWEEP, json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, root: Path) -> Kept:
        """Raises StoreError where there is none, or where it is damaged."""
        try:
            v = json.loads((root / SWEEP).read_text(encoding="utf-8"))
            axes = [Axis(str(one["key"]), tuple(map(str, one["values"]))) for one in v["axes"]]
            values = {str(n): {str(k): str(x) for k, x in c.items()} for n, c in v["cells"].items()}
            return cls(axes, values, {str(n): str(text) for n, text in v["stopped"].items()})
        except FileNotFoundError:
            raise StoreError(f"{root} is not the directory of a sweep (no {SWEEP} in it)") from None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{root / SWEEP}: can't be read ({error}); give --over again, as before"
            ) from None


@dataclass(frozen=True, slots=True)
class Sweep:
    """A sweep that is ready to be played."""

    root: Path
    cells: list[Cell]

    def place(self, cell: Cell) -> Path:
        """The cell's run directory."""
        return cell_directory(self.root, cell.name)

    @property
    def kept(self) -> Kept:
        """What is written down so far."""
        return Kept.read(self.root)

    def note_stop(self, cell: Cell, reason: str | None) -> None:
        """Write down what ended a cell's training; none: it went well."""
        stopped = {name: text for name, text in self.kept.stopped.items() if name != cell.name}
        if reason is not None:
            stopped[cell.name] = reason
        replace(self.kept, stopped=stopped).write(self.root)


def cell_directory(root: Path, name: str) -> Path:
    """Where a cell's run lies."""
    return root / "cells" / name


def is_sweep(root: Path) -> bool:
    """Whether `root` is the directory of a sweep."""
    return (root / SWEEP).is_file()


def open_sweep(root: Path, axes: Sequence[Axis], settings: Settings) -> Sweep:
    """Check the whole grid before anything is trained, and write down what it is.

    Values may be added to a sweep that began; its cells stay. Raises ConfigError, StoreError (the
    directory holds something else), TaskError (cells that would meet other test tasks).
    """
    grid = cells(axes, _on_the_same_kinds(settings))
    for cell in grid:
        get_harness(cell.settings.harness.name).installed()
    if (root / "config.toml").exists() or (root / "fleet.json").exists():
        raise StoreError(f"{root} holds a run: name another directory for the sweep")
    stopped: dict[str, str] = {}
    if is_sweep(root):
        before = Kept.read(root)
        if [one.key for one in before.axes] != [one.key for one in axes]:
            keys = ", ".join(one.key for one in before.axes)
            raise StoreError(
                f"{root} was started over {keys}: name another directory for other settings"
            )
        stopped = before.stopped
    sweep = Sweep(root, grid)
    _check_cells(sweep)
    Kept(list(axes), {cell.name: cell.values for cell in grid}, stopped).write(root)
    return sweep


def _on_the_same_kinds(settings: Settings) -> Settings:
    """With the kinds of tasks named, or all of them: no cell chooses its own."""
    kinds = settings.tasks.kinds or config.known_kinds(settings)
    tasks = settings.tasks.model_copy(update={"kinds": kinds, "probe": 0})
    return settings.model_copy(update={"tasks": tasks})


def reopen_sweep(root: Path, changes: Sequence[str] = ()) -> Sweep:
    """Open a sweep again with its own grid and settings, overlaid by `changes`."""
    kept = Kept.read(root)
    first = next(iter(kept.cells), "")
    file = cell_directory(root, first) / "config.toml"
    if not file.is_file():
        raise StoreError(f"{root}: its first cell {first} is gone; give --over and settings again")
    return open_sweep(root, kept.axes, config.load(file, list(changes)))


def _check_cells(sweep: Sweep) -> None:
    """Open every cell once: its settings are its own, its tasks held out and those of the first."""
    exam: list[tuple[str, str]] | None = None
    for cell in sweep.cells:
        run = open_run(sweep.place(cell), cell.settings, resume=True)
        try:
            check_tasks(run)
            own = [(task.id, task_hash(task)) for task in test_tasks(run)]
        finally:
            run.close()
        exam = exam or own
        if own != exam:
            raise TaskError(
                f"{cell.name} would be evaluated on other test tasks than {sweep.cells[0].name}: "
                "cells are compared on the same ones; leave out the axis that changes them"
            )
