"""The rollouts that a request names."""

from __future__ import annotations

from collections.abc import Sequence

from harness_adapters.errors import LearnerError
from harness_adapters.records import Rollout
from harness_adapters.store import Store


def asked_rollouts(store: Store, ids: Sequence[str]) -> list[Rollout]:
    """The rollouts with these ids, in this order, each once; order decides batches and sums.

    Raises LearnerError for one that the store lacks.
    """
    found = {rollout.id: rollout for rollout in store.rollouts(ids=ids)}
    for name in ids:
        if name not in found:
            raise LearnerError(f"the run has no rollout {name}")
    return [found[name] for name in dict.fromkeys(ids)]
