"""All that the report shows, read from a run directory; tolerant of runs that aren't finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_adapters.evaluation.compare import (
    Comparison,
    busy_seconds,
    compare,
    headline,
    rate,
)
from harness_adapters.records import Phase, Rollout
from harness_adapters.report.charts import ArmRate
from harness_adapters.store import Store

BASE, RAW, ORACLE = "base", "raw", "oracle"


@dataclass(frozen=True, slots=True)
class RunData:
    """A run as the report needs it. Rollouts come without their turns."""

    name: str
    harness: str
    treatment: str
    """Label of the arm that is compared with the base."""
    settings: dict[str, Any]
    environment: dict[str, Any]
    dataset: dict[str, Any]
    best: dict[str, Any] | None
    timing: dict[str, float]
    facts: dict[str, Any]
    """Other facts worth showing, by name."""
    steps: list[dict[str, Any]]
    """Metrics of training steps, by step."""
    validations: list[dict[str, Any]]
    """Metrics of validation points, by step."""
    rollouts: list[Rollout]
    comparison: Comparison | None
    arms: list[ArmRate]

    @property
    def unseen_families(self) -> Collection[str]:
        """Families that only the test split has."""
        return set(self.dataset.get("unseen_families") or ())

    @property
    def minutes(self) -> float:
        """Wall time of the whole run so far."""
        spent = sum(self.timing.values()) or busy_seconds(self.rollouts)
        return spent / 60

    @property
    def warm_started(self) -> bool:
        """Whether the base is a supervised start and not the model as it comes."""
        return bool((self.settings.get("warm_start") or {}).get("steps", 0))

    def headline(self) -> str:
        """The sentence on top: the result, or how far the run has come."""
        if self.comparison is not None:
            return headline(self.comparison, sessions=len(self.rollouts), minutes=self.minutes)
        if self.validations:
            first, last = self.validations[0], self.validations[-1]
            now = f"validation {first['validation/pass_rate']:.0%}"
            if last is not first:
                now += f" -> {last['validation/pass_rate']:.0%}"
            return f"{self.harness}: {self._progress()}, {now}, no held-out result yet"
        return f"{self.harness}: {self._progress()}, no held-out result yet"

    def _progress(self) -> str:
        total = (self.settings.get("train") or {}).get("steps")
        done = len(self.steps)
        return f"{done} of {total} training steps" if total else f"{done} training steps"


def read_run(root: Path) -> RunData:
    """Read a run directory. Raises StoreError where it isn't one."""
    store = Store.existing(root)
    try:
        rollouts = store.rollouts(turns=False)
        settings = _table(store.fact("settings"))
        dataset = _table(store.fact("dataset"))
        harness = str(
            _table(settings.get("harness")).get("name")
            or (rollouts[0].harness if rollouts else "agent")
        )
        treatment = _treatment(rollouts, harness)
        comparison = None
        played = {r.arm for r in rollouts if r.phase is Phase.TEST and r.reward is not None}
        if {BASE, treatment} <= played:
            comparison = _compare(rollouts, treatment, set(dataset.get("unseen_families") or ()))
        best = store.fact("best")
        steps, validations = _metrics(store.metrics())
        return RunData(
            name=root.resolve().name,
            harness=harness,
            treatment=treatment,
            settings=settings,
            environment=_table(store.fact("environment")),
            dataset=dataset,
            best=best if isinstance(best, dict) else None,
            timing={str(k): float(v) for k, v in _table(store.fact("timing")).items()},
            facts={key: v for key in ("canary",) if (v := store.fact(key)) is not None},
            steps=steps,
            validations=validations,
            rollouts=rollouts,
            comparison=comparison,
            arms=_arms(rollouts, treatment, comparison),
        )
    finally:
        store.close()


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _treatment(rollouts: list[Rollout], harness: str) -> str:
    """The adapter's label: the harness's name, else the most played other arm of the test."""
    arms = Counter(r.arm for r in rollouts if r.phase is Phase.TEST)
    for known in (RAW, BASE, ORACLE):
        arms.pop(known, None)
    if not arms or harness in arms:
        return harness
    return arms.most_common(1)[0][0]


def _compare(rollouts: list[Rollout], treatment: str, unseen: set[str]) -> Comparison | None:
    test = [r for r in rollouts if r.phase is Phase.TEST and r.reward is not None]
    sides = [{(r.task, r.attempt) for r in test if r.arm == arm} for arm in (BASE, treatment)]
    if not sides[0] & sides[1]:
        return None
    return compare(rollouts, base=BASE, treatment=treatment, unseen_families=unseen)


def _arms(rollouts: list[Rollout], treatment: str, comparison: Comparison | None) -> list[ArmRate]:
    """Raw model, base, adapter: those that played; the last two over the same pairs."""
    arms: list[ArmRate] = []
    raw = rate(r for r in rollouts if r.phase is Phase.TEST and r.arm == RAW)
    if raw.sessions:
        arms.append(ArmRate("raw model", raw, "raw"))
    if comparison is not None:
        arms.append(ArmRate(BASE, comparison.base_rate, "base"))
        arms.append(ArmRate(f"adapter {treatment}", comparison.treatment_rate, "treatment"))
    return arms


def _metrics(
    records: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Training and validation records by step; a step that was run again counts once, the last."""
    steps: dict[float, dict[str, Any]] = {}
    validations: dict[float, dict[str, Any]] = {}
    for record in records:
        step = record.get("step") if isinstance(record, dict) else None
        if not isinstance(step, int | float):
            continue
        if isinstance(record.get("validation/pass_rate"), int | float):
            validations[step] = record
        else:
            steps[step] = record
    return [steps[s] for s in sorted(steps)], [validations[s] for s in sorted(validations)]
