"""What is known of an adapter that somebody names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_adapters import config
from harness_adapters.config import EngineSettings, GuardSettings, Settings
from harness_adapters.engine.embedded import resolve_model
from harness_adapters.errors import HarnessError, ModelError
from harness_adapters.evaluation.held_out import Fingerprint, fingerprint
from harness_adapters.harness.registry import get_harness
from harness_adapters.store import Store
from harness_adapters.tasks import Split, load_dataset
from harness_adapters.training.warm_base import file_hash

CARD = "adapter_card.json"
TRAINED_ON = "trained_on.json"
BASE_FOLDER = "base"
"""The base's weights beside a published adapter, where they can't be had by name."""
_REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_LABEL = re.compile(r"[\w.-]{1,60}")
WEIGHTS, CONFIG = "adapter_model.safetensors", "adapter_config.json"


@dataclass(frozen=True, slots=True)
class Origin:
    """How an adapter came about, by its card or by the run that it lies in."""

    settings: Settings
    trained_on: list[Fingerprint]
    """Training and validation tasks."""
    tasks: Path | None
    """The dataset, where it is on this machine."""
    base: Path | None
    """The weights it was trained on, where they are on this machine."""
    card: dict[str, Any] | None = None

    @property
    def harness(self) -> str:
        """Name of the agent that it was trained in."""
        if self.card is not None:
            return str(self.card["harness"]["name"])
        name = self.settings.harness.name
        try:
            return get_harness(name).name
        except HarnessError:  # a harness file that is gone
            return Path(name).stem


@dataclass(frozen=True, slots=True)
class Adapter:
    """A PEFT directory."""

    path: Path
    sha256: str
    """Of its weights."""
    peft: dict[str, Any]
    origin: Origin | None
    """None where nothing says where it comes from."""

    @property
    def label(self) -> str:
        """By its card, else its directory's name: a download's directory says nothing."""
        card = self.origin.card if self.origin is not None else None
        named = str(card.get("name", "")) if card is not None else ""
        return named if _LABEL.fullmatch(named) else self.path.name

    @property
    def name(self) -> str:
        """Unique for these weights: what an engine serves it as."""
        return f"{self.label}-{self.sha256[:8]}"

    @property
    def rank(self) -> int:
        """LoRA rank."""
        return int(self.peft.get("r", 0))

    def base(self, say: Callable[[str], None] = lambda _: None) -> Path:
        """Directory of the weights it fits. Raises ModelError where they can't be had."""
        if self.origin is not None and self.origin.base is not None:
            return self.origin.base
        if (self.path / BASE_FOLDER / "config.json").is_file():
            return self.path / BASE_FOLDER
        named = str(self.peft.get("base_model_name_or_path") or "")
        if not named:
            raise ModelError(f"{self.path / CONFIG}: names no base model; give one with --model")
        if Path(named).is_absolute() and not Path(named).is_dir():
            raise ModelError(
                f"{self.path}: fits the base {named}, which is not here; give it with --model, or "
                "publish the adapter with its base (harness-adapters card)"
            )
        return resolve_model(named, progress=say)


def find_adapter(given: Path) -> Adapter:
    """The adapter at `given`: a PEFT directory, a run (its best adapter), or a Hub repository.

    Raises ModelError saying what is missing.
    """
    path = given.expanduser().absolute()
    if not path.exists() and _REPOSITORY.fullmatch(str(given)):
        from harness_adapters.adapters.hub import download

        path = download(str(given))
    if (path / "run.sqlite").is_file():
        path = best_of_run(path)
    try:
        peft = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelError(
            f"{given}: neither a PEFT adapter directory ({CONFIG} and weights) nor a run"
        ) from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{path / CONFIG}: can't be read: {error}") from None
    if not isinstance(peft, dict) or not (path / WEIGHTS).is_file():
        raise ModelError(f"{path}: not a PEFT adapter directory ({WEIGHTS} is missing)")
    return Adapter(path, file_hash(path / WEIGHTS), peft, _origin(path))


def best_of_run(root: Path) -> Path:
    """Directory of a run's best adapter. Raises ModelError where there is none yet."""
    store = Store.existing(root)
    try:
        best = store.fact("best")
    finally:
        store.close()
    if best is None:
        raise ModelError(f"{root} holds no trained adapter yet: harness-adapters train it first")
    return root / "adapters" / str(best["adapter"])


def _origin(path: Path) -> Origin | None:
    if (path / CARD).is_file():
        return _from_card(path)
    root = path.parent.parent
    if path.parent.name == "adapters" and (root / "config.toml").is_file():
        return origin_of_run(root)
    return None


def _from_card(path: Path) -> Origin:
    try:
        card = json.loads((path / CARD).read_text(encoding="utf-8"))
        settings = _trusted(Settings.model_validate(card["settings"]))
        str(card["harness"]["name"]), str(card["harness"]["version"])
        prints = json.loads((path / TRAINED_ON).read_text(encoding="utf-8"))
        trained_on = [Fingerprint.from_json(one) for one in prints["tasks"]]
    except (OSError, ValueError, KeyError, TypeError, ValidationError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(
            f"{path}: {CARD} and {TRAINED_ON} can't be read ({reason}); take both from where the "
            "adapter was published"
        ) from None
    base = path / BASE_FOLDER
    return Origin(settings, trained_on, None, base if base.is_dir() else None, card)


def _trusted(settings: Settings) -> Settings:
    """A stranger's settings without what would reach beyond a session: code, servers, places."""
    engine, tasks = settings.engine, settings.tasks
    own = EngineSettings(max_context=engine.max_context, max_lora_rank=engine.max_lora_rank)
    dataset = "starter" if tasks.dataset == "starter" else Path(tasks.dataset).name
    return settings.model_copy(
        update={
            "model": settings.model.model_copy(update={"trust_remote_code": False}),
            "engine": own,
            "guard": GuardSettings(),
            "tasks": tasks.model_copy(update={"dataset": dataset}),
        }
    )


def origin_of_run(root: Path) -> Origin:
    """The origin of every adapter of a run."""
    settings = config.load(root / "config.toml")
    store = Store.existing(root)
    try:
        base = store.fact("model_dir")
    finally:
        store.close()
    chosen = settings.tasks
    tasks = root / "tasks" if chosen.dataset == "starter" else Path(chosen.dataset)
    trained_on: list[Fingerprint] = []
    if tasks.is_dir():
        dataset = load_dataset(tasks)
        both = (*dataset.split(Split.TRAIN), *dataset.split(Split.VALIDATION))
        trained_on = [fingerprint(task) for task in both]
    here = base is not None and Path(base).is_dir()
    return Origin(settings, trained_on, tasks if trained_on else None, Path(base) if here else None)
