"""All that the report shows, read from a run directory; tolerant of runs that aren't finished."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_adapters.config import PriceSettings
from harness_adapters.evaluation.compare import (
    Comparison,
    Selection,
    busy_seconds,
    headline,
    matching,
    rate,
    select,
    summarise,
)
from harness_adapters.evaluation.cost import Ledger, ledger, money
from harness_adapters.evaluation.matrix import Matrix, MatrixPlan, matrix_of
from harness_adapters.evaluation.results import Rate
from harness_adapters.records import Phase, Rollout
from harness_adapters.report.charts import ArmRate
from harness_adapters.store import Store, Usage

BASE, RAW, ORACLE = "base", "raw", "oracle"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the run says it evaluates: the store's fact `evaluation`; all None where it is silent.

    Sessions of another adapter, another temperature or other tasks are no part of the result.
    """

    base: str
    treatment: str
    played: dict[str, str] | None = None
    """Arm -> name of the adapter that plays it."""
    temperature: float | None = None
    tasks: frozenset[str] | None = None
    harness: str | None = None
    """In an evaluation of several harnesses: the one that is shown first."""
    unseen_families: frozenset[str] | None = None
    """None: what the dataset says."""

    def test_sessions(self, rollouts: list[Rollout]) -> list[Rollout]:
        """The test sessions on its tasks, of any arm."""
        test = (r for r in rollouts if r.phase is Phase.TEST and self.harness in (None, r.harness))
        return [r for r in test if self.tasks is None or r.task in self.tasks]


@dataclass(frozen=True, slots=True)
class RawSample:
    """The raw model on some of the tasks that are quoted, and the arms on the same ones."""

    rate: Rate
    tasks: int
    of_tasks: int | None
    """How many tasks the base and the adapter met; None before they did."""
    base: Rate | None
    treatment: Rate | None


@dataclass(frozen=True, slots=True)
class WarmStart:
    """How the base was made: the store's fact `warm_base`."""

    key: str
    demonstrations: int
    seconds: float
    """Demonstrations and supervised steps, when they were made; a later run finds them cached."""
    losses: list[float]
    """One per supervised step."""


@dataclass(frozen=True, slots=True)
class RunData:
    """A run as the report needs it. Rollouts come without their turns."""

    name: str
    harness: str
    settings: dict[str, Any]
    environment: dict[str, Any]
    dataset: dict[str, Any]
    best: dict[str, Any] | None
    timing: dict[str, float]
    """Seconds by part of the run; "warm start" is what it took, not what finding it took."""
    facts: dict[str, Any]
    """Other facts worth showing, by name."""
    steps: list[dict[str, Any]]
    """Metrics of training steps, by step."""
    validations: list[dict[str, Any]]
    """Metrics of validation points, by step."""
    rollouts: list[Rollout]
    evaluation: Evaluation
    selection: Selection
    """The pairs of the result; none where both arms haven't been played."""
    comparison: Comparison | None
    raw: RawSample | None
    warm: WarmStart | None
    verdicts: Counter[tuple[str, str, str]]
    """(decision, rule, goal) -> calls, of all calls that the guard didn't simply allow."""
    matrix: Matrix | None
    """Where several adapters or harnesses are evaluated."""
    usage: dict[str, Usage]
    """Rollout id -> what it took of the engine."""

    @property
    def ledger(self) -> Ledger:
        """What it all took, by the prices in the settings."""
        try:
            price = PriceSettings.model_validate(self.settings.get("price") or {})
        except ValidationError:
            price = PriceSettings()
        return ledger(
            self.rollouts,
            self.usage,
            price,
            seconds=60 * self.minutes,
            comparison=self.comparison,
        )

    @property
    def treatment(self) -> str:
        """Label of the arm that is compared with the base."""
        return self.evaluation.treatment

    @property
    def minutes(self) -> float:
        """Wall time of the whole run so far, its warm start included.

        A part that is still going has no timing yet: then what its sessions took counts.
        """
        warm = self.warm.seconds if self.warm is not None else 0.0
        return max(sum(self.timing.values()), busy_seconds(self.rollouts) + warm) / 60

    @property
    def phases(self) -> dict[str, int]:
        """Sessions of the whole run by phase, in the order that they are made in."""
        counts = Counter(r.phase for r in self.rollouts)
        if self.warm is not None:
            counts[Phase.DEMONSTRATION] = max(counts[Phase.DEMONSTRATION], self.warm.demonstrations)
        return {str(phase): counts[phase] for phase in Phase if counts[phase]}

    @property
    def sessions(self) -> int:
        """All sessions of the run, the demonstrations of its warm start included."""
        return sum(self.phases.values())

    @property
    def warm_started(self) -> bool:
        """Whether the base is a supervised start and not the model as it comes."""
        steps = (self.settings.get("warm_start") or {}).get("steps", 0)
        return self.warm is not None or bool(steps)

    @property
    def unplayed(self) -> int:
        """Tasks of the evaluation that an arm has no session on yet."""
        return sum(
            1
            for task in self.evaluation.tasks or ()
            if {r.arm for r in self.selection.sessions if r.task == task}
            < {self.evaluation.base, self.treatment}
        )

    @property
    def arms(self) -> list[ArmRate]:
        """Raw model, base, adapter: those that played; the last two over the same pairs."""
        arms: list[ArmRate] = []
        if self.raw is not None:
            arms.append(ArmRate("raw model, a sample", self.raw.rate, "raw"))
        if (c := self.comparison) is not None:
            arms.append(ArmRate(c.base, c.base_rate, "base"))
            arms.append(ArmRate(f"adapter {c.treatment}", c.treatment_rate, "treatment"))
        return arms

    def headline(self) -> str:
        """The sentence on top: the result, or how far the run has come."""
        if self.comparison is not None:
            dollars = self.ledger.total.dollars
            harness = self.evaluation.harness
            return headline(
                self.comparison,
                name=f"{self.treatment} in {harness}" if harness else None,
                sessions=self.sessions,
                minutes=self.minutes,
                cost="" if dollars is None else money(dollars),
            )
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
        evaluation = _evaluation(store.fact("evaluation"), rollouts, harness)
        selection = select(
            evaluation.test_sessions(rollouts),
            base=evaluation.base,
            treatment=evaluation.treatment,
            unseen_families=(
                evaluation.unseen_families
                if evaluation.unseen_families is not None
                else dataset.get("unseen_families") or ()
            ),
            played=evaluation.played,
            temperature=evaluation.temperature,
        )
        best = store.fact("best")
        warm = _warm_start(store.fact("warm_base"))
        steps, validations = _metrics(store.metrics())
        return RunData(
            name=root.resolve().name,
            harness=harness,
            settings=settings,
            environment=_table(store.fact("environment")),
            dataset=dataset,
            best=best if isinstance(best, dict) else None,
            timing=_timing(_table(store.fact("timing")), warm),
            facts={key: v for key in ("canary",) if (v := store.fact(key)) is not None},
            steps=steps,
            validations=validations,
            rollouts=rollouts,
            evaluation=evaluation,
            selection=selection,
            comparison=summarise(selection) if selection.quoted else None,
            raw=_raw(evaluation, rollouts, selection),
            warm=warm,
            verdicts=store.verdicts(),
            matrix=_matrix(store.fact("matrix"), rollouts),
            usage=store.usage(),
        )
    finally:
        store.close()


def _matrix(fact: Any, rollouts: list[Rollout]) -> Matrix | None:
    return matrix_of(MatrixPlan.from_fact(fact), rollouts) if isinstance(fact, dict) else None


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _evaluation(fact: Any, rollouts: list[Rollout], harness: str) -> Evaluation:
    """What is compared: as the run says, else the base and the most played other arm."""
    if isinstance(fact, dict):
        return Evaluation(
            base=str(fact["base"]),
            treatment=str(fact["treatment"]),
            played={str(arm): str(adapter) for arm, adapter in fact["played"].items()},
            temperature=float(fact["temperature"]),
            tasks=frozenset(map(str, fact["tasks"])),
            harness=fact.get("harness"),
            unseen_families=(
                frozenset(fact["unseen_families"]) if "unseen_families" in fact else None
            ),
        )
    arms = Counter(r.arm for r in rollouts if r.phase is Phase.TEST)
    for known in (RAW, BASE, ORACLE):
        arms.pop(known, None)
    if not arms or harness in arms:
        return Evaluation(BASE, harness)
    return Evaluation(BASE, arms.most_common(1)[0][0])


def _warm_start(fact: Any) -> WarmStart | None:
    if not isinstance(fact, dict):
        return None
    return WarmStart(
        key=str(fact["key"]),
        demonstrations=int(fact["demonstrations"]),
        seconds=float(fact["seconds"]),
        losses=[float(loss) for loss in fact.get("losses") or ()],
    )


def _timing(spent: dict[str, Any], warm: WarmStart | None) -> dict[str, float]:
    """Seconds by part. A warm start that was cached counts what it once took, and only once."""
    timing = {str(part): float(seconds) for part, seconds in spent.items()}
    if warm is not None:
        own = max(warm.seconds, timing.pop("warm start", 0.0))
        timing = {"warm start": own, **timing}
    return timing


def _raw(evaluation: Evaluation, rollouts: list[Rollout], selection: Selection) -> RawSample | None:
    """The raw model on quoted families, beside the arms on the same tasks."""
    raw = [r for r in evaluation.test_sessions(rollouts) if r.arm == RAW and r.reward is not None]
    if evaluation.temperature is not None:
        raw = matching(raw, {RAW: BASE}, evaluation.temperature)
    unseen = selection.unseen_families
    if not any(p.family in unseen for p in selection.quoted):
        raw = [r for r in raw if r.family not in unseen]
    if not raw:
        return None
    tasks = {r.task for r in raw}
    shared = [p for p in selection.quoted if p.task in tasks]
    return RawSample(
        rate=rate(raw),
        tasks=len(tasks),
        of_tasks=len({p.task for p in selection.quoted}) or None,
        base=rate(p.base for p in shared) if shared else None,
        treatment=rate(p.treatment for p in shared) if shared else None,
    )


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
