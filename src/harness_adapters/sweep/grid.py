"""The grid of a sweep: axes of settings, and one cell for each combination of their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from harness_adapters import config
from harness_adapters.config import Settings
from harness_adapters.errors import ConfigError
from harness_adapters.training.run import CHANGEABLE

_LONGEST = 100
"""Characters of a cell's directory name."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One setting and the values that it takes, written as `--set` takes them."""

    key: str
    """`section.name`."""
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of values: a run of its own."""

    name: str
    """Also its directory's: `bonus-0.1_advantage-rloo`."""
    values: dict[str, str]
    """Key -> value, in the order of the axes."""
    settings: Settings


def axis(text: str) -> Axis:
    """Read `reward.bonus=0,0.1,0.3`. Commas inside brackets and quotes part nothing.

    Raises ConfigError with what is wrong.
    """
    key, sign, rest = text.partition("=")
    key = key.strip()
    values = tuple(_parted(rest))
    if not sign or not key or not all(values):
        raise ConfigError(f"--over {text!r}: write section.key=value,value")
    if len(set(values)) < len(values):
        raise ConfigError(f"--over {text!r}: a value stands twice")
    return Axis(key, values)


def cells(axes: Sequence[Axis], settings: Settings) -> list[Cell]:
    """Every combination, the last axis fastest; `settings` for all that no axis says.

    Raises ConfigError for a setting that isn't one, that doesn't change what is learnt, or whose
    value is wrong, and where two combinations are the same.
    """
    if not axes:
        raise ConfigError("--over: name a setting, such as --over reward.bonus=0,0.1,0.3")
    keys = [one.key for one in axes]
    for key in keys:
        _check(key, keys, settings)
    names = _short(keys)
    found: list[Cell] = []
    for values in product(*(one.values for one in axes)):
        changes = [f"{key}={value}" for key, value in zip(keys, values, strict=True)]
        try:
            own = config.load(None, changes, begin=settings)
        except ConfigError as error:
            raise ConfigError(f"--over {' '.join(changes)}: {error}") from None
        name = "_".join(f"{names[k]}-{_plain(v)}" for k, v in zip(keys, values, strict=True))
        found.append(Cell(_unique(name, found), dict(zip(keys, values, strict=True)), own))
        same = next((cell for cell in found[:-1] if cell.settings == own), None)
        if same is not None:
            raise ConfigError(f"--over: {found[-1].name} is the same as {same.name}: name it once")
    return found


def _parted(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[]{}":
            depth += 1 if char in "[{" else -1
        elif char == "," and not depth:
            parts.append("")
            continue
        parts[-1] += char
    return [part.strip() for part in parts]


def _check(key: str, keys: Sequence[str], settings: Settings) -> None:
    known = settings.model_dump()
    section, _, name = key.partition(".")
    table = known.get(section)
    if not isinstance(table, dict) or name not in table:
        there = sorted(table) if isinstance(table, dict) else sorted(known)
        raise ConfigError(f"--over {key}: no such setting; there are {', '.join(there)}")
    if section in CHANGEABLE:
        raise ConfigError(
            f"--over {key}: {section}.… changes nothing that is learnt; give it with --set"
        )
    if keys.count(key) > 1:
        raise ConfigError(f"--over {key}: named twice; give all its values at once")


def _short(keys: Sequence[str]) -> dict[str, str]:
    """Key -> its last part where no other key ends the same."""
    last = [key.rpartition(".")[2] for key in keys]
    return {
        key: end if last.count(end) == 1 else key.replace(".", "-")
        for key, end in zip(keys, last, strict=True)
    }


def _plain(value: str) -> str:
    """A value as part of a directory name."""
    return re.sub(r"[^\w.+-]+", "-", value).strip("-.") or "none"


def _unique(name: str, before: Sequence[Cell]) -> str:
    """`name`, or `name~2` where values look the same once they are plain."""
    name = name[:_LONGEST]
    again = sum(cell.name.partition("~")[0] == name for cell in before)
    return f"{name}~{again + 1}" if again else name
