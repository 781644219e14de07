"""All families of the starter suite, and one instance of one of them."""

from __future__ import annotations

import random
from collections.abc import Collection

from harness_adapters.errors import TaskError
from harness_adapters.tasks.starter import code, edits, files, logs, questions, tables, text
from harness_adapters.tasks.starter.family import LEVELS, Draft, Family

FAMILIES: dict[str, Family] = {
    each.name: each
    for theme in (logs, tables, text, edits, files, code, questions)
    for each in theme.FAMILIES
}
"""By name. Those with `test_only` never appear in training."""


def family(name: str) -> Family:
    """A family by name; TaskError lists the known ones."""
    try:
        return FAMILIES[name]
    except KeyError:
        raise TaskError(
            f"no starter family {name!r}; there are {', '.join(sorted(FAMILIES))}"
        ) from None


def kinds(families: Collection[str] = ()) -> set[str]:
    """`family/level` of all that may be trained on, of these families or of all."""
    chosen = [family(name) for name in families] if families else list(FAMILIES.values())
    return {f"{one.name}/{level}" for one in chosen if not one.test_only for level in LEVELS}


def draft(name: str, level: int, seed: int) -> Draft:
    """One instance, the same for the same arguments."""
    if level not in LEVELS:
        raise TaskError(f"starter families have the levels 1, 2 and 3, not {level}")
    return family(name).generate(random.Random(f"{name}/{level}/{seed}"), level)
