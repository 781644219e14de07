import dataclasses
import json

import pytest

from harness_adapters.errors import StoreError
from harness_adapters.evaluation.compare import compare, headline, matching, select, to_json
from harness_adapters.evaluation.headline import apart
from harness_adapters.records import Phase, Rollout, SessionEnd

from .conftest import MakeRollout


@pytest.fixture
def sixty(make_rollout: MakeRollout) -> list[Rollout]:
    """60 tasks in 12 families, 25 -> 41 solved, 20 won and 4 lost, one call of four less."""
    rollouts = []
    for i in range(60):
        # 21 solved by both, 4 by the base alone, 20 by the adapter alone, 15 by neither.
        base, treatment = (True, i < 21) if i < 25 else (False, i < 45)
        task = f"family{i % 12:02d}-{i}"
        rollouts += [
            make_rollout("base", task, base, calls=4, started=i * 10.0),
            make_rollout("pi", task, treatment, calls=3 if i % 2 else 2, started=i * 10.0 + 5),
        ]
    return rollouts


def test_the_figures_of_a_known_table(sixty: list[Rollout]) -> None:
    c = compare(sixty, unseen_families={"family10", "family11"})
    # Without the ten tasks of the two unseen families: 19 both, 2 base, 18 adapter, 11 neither.
    assert (c.tasks, c.pairs, c.attempts) == (50, 50, 1)
    assert (c.base_rate.solved, c.treatment_rate.solved) == (21, 37)
    assert (c.base_rate.sessions, c.treatment_rate.sessions) == (50, 50)
    assert dataclasses.astuple(c.discordance) == (19, 2, 18, 11)
    assert c.by_task.value == pytest.approx(16 / 50)
    # sd of 18 x +1, 2 x -1, 30 x 0 over sqrt(50), t quantile on 49 degrees: by hand.
    variance = (20 - 16**2 / 50) / 49
    half = 2.0095752 * (variance / 50) ** 0.5
    assert c.by_task.interval is not None
    assert c.by_task.interval.low == pytest.approx(16 / 50 - half, abs=1e-6)
    assert c.mcnemar == pytest.approx(2 * (1 + 20 + 190) / 2**20)
    assert c.by_family.clusters == 10
    assert c.calls.pairs == 50
    assert c.calls.base == 4
    assert c.calls.treatment == pytest.approx(2.5)
    assert c.calls_both_solved is not None
    assert c.calls_both_solved.pairs == 19
    assert c.more_tasks == 0
    assert c.pass_at == {1: (pytest.approx(21 / 50), pytest.approx(37 / 50))}
    # What it took and how sessions ended counts all of them.
    assert c.sessions == 120
    assert c.minutes == pytest.approx(595 / 60, abs=0.2)
    assert c.ends == {"base": {"finished": 60}, "pi": {"finished": 60}}


def test_families_that_training_never_saw_stand_apart(sixty: list[Rollout]) -> None:
    c = compare(sixty, unseen_families={"family10", "family11"})
    assert c.seen is not None
    assert c.unseen is not None
    assert (c.seen.tasks, c.unseen.tasks) == (50, 10)
    assert c.seen.difference == c.by_task
    assert dataclasses.astuple(c.unseen.discordance) == (2, 2, 2, 4)
    assert [row.unseen for row in c.families] == [False] * 10 + [True] * 2
    assert sum(row.pairs for row in c.families if not row.unseen) == c.pairs
    text = apart(c)
    assert text.startswith("families never trained on: 40% -> 40%, 0 [")
    assert "points on 10 tasks; clustered by family the interval is [" in text
    selection = select(sixty, base="base", treatment="pi", unseen_families={"family10", "family11"})
    assert {p.family for p in selection.apart} == {"family10", "family11"}
    assert len(selection.quoted) == 50
    assert not {p.family for p in selection.quoted} & {"family10", "family11"}


def test_only_unseen_families_are_quoted_as_such(make_rollout: MakeRollout) -> None:
    rollouts = [make_rollout(arm, f"new-{i}", i % 2 == 0) for arm in ("base", "pi")
                for i in range(6)]  # fmt: skip
    c = compare(rollouts, unseen_families={"new"})
    assert (c.tasks, c.seen) == (6, None)
    assert "on 6 held-out tasks of families never trained on" in headline(c)
    assert "never trained on" not in apart(c)


def test_headline_of_a_clear_result(sixty: list[Rollout]) -> None:
    assert headline(compare(sixty)) == (
        "pi: 42% -> 68%, +27 [12, 42] points pass@1 on 60 held-out tasks, "
        "38% fewer tool calls, 120 sessions, 10 minutes"
    )


def test_headline_takes_the_whole_runs_cost(sixty: list[Rollout]) -> None:
    text = headline(compare(sixty), sessions=1340, minutes=31.2)
    assert text.endswith("1,340 sessions, 31 minutes")


def test_headline_of_an_unclear_result_says_so(make_rollout: MakeRollout) -> None:
    rollouts = []
    for i in range(40):
        task = f"f{i % 4}-{i}"
        rollouts += [
            make_rollout("base", task, i % 2 == 0, calls=2),
            make_rollout("pi", task, i % 2 == 0 if i > 7 else i % 3 > 0, calls=2 + (i % 5 == 0)),
        ]
    c = compare(rollouts)
    assert c.by_task.interval is not None
    assert 0.0 in c.by_task.interval
    assert c.more_tasks
    text = headline(c)
    assert f"about {c.more_tasks:,} more tasks would settle it" in text
    assert "not distinguishable from none" in text
    assert "10% more tool calls" in text
    assert text.endswith("under a minute")


def test_headline_of_no_change_in_calls(make_rollout: MakeRollout) -> None:
    rollouts = []
    for i in range(20):
        rollouts += [
            make_rollout("base", f"f-{i}", False, calls=i % 4),
            make_rollout("pi", f"f-{i}", True, calls=(i + 1) % 4),
        ]
    assert "no clear change in tool calls (0% [" in headline(compare(rollouts))


def test_sessions_without_reward_are_excluded_by_name(make_rollout: MakeRollout) -> None:
    c = compare(
        [
            make_rollout("base", "a-1", True),
            make_rollout("pi", "a-1", False),
            make_rollout("base", "a-2", True),
            make_rollout("pi", "a-2", None),
            make_rollout("base", "a-3", None, end=SessionEnd.FINISHED),
            make_rollout("pi", "a-4", True),
            make_rollout("pi", "a-1", True, started=9.0),
            make_rollout("raw", "a-1", True),
            make_rollout("base", "a-5", True, phase=Phase.VALIDATION),
        ]
    )
    assert (c.pairs, c.base_rate.solved, c.treatment_rate.solved) == (1, 1, 0)
    assert {(e.arm, e.reason): e.sessions for e in c.excluded} == {
        ("base", "no partner"): 1,
        ("base", "verifier"): 1,
        ("pi", "api_error"): 1,
        ("pi", "no partner"): 1,
        ("pi", "repeated"): 1,
    }
    assert c.sessions == 7


def test_another_adapter_or_temperature_is_another_comparison(make_rollout: MakeRollout) -> None:
    rollouts = [
        make_rollout("base", "a-1", False, started=5.0),
        make_rollout("pi", "a-1", True, adapter="pi-v9", started=5.0),
        # Earlier ones under the same labels: they must not be the "first" of a repetition.
        make_rollout("base", "a-1", True, temperature=0.0),
        make_rollout("pi", "a-1", False, adapter="pi-v3"),
        make_rollout("pi", "a-2", None, adapter="pi-v3"),
    ]
    played = {"base": "base", "pi": "pi-v9"}
    c = compare(rollouts, played=played, temperature=0.8)
    assert (c.pairs, c.base_rate.solved, c.treatment_rate.solved, c.sessions) == (1, 0, 1, 2)
    assert {(e.arm, e.reason): e.sessions for e in c.excluded} == {
        ("base", "another temperature"): 1,
        ("pi", "another adapter"): 2,
    }
    assert matching(rollouts, played, 0.8) == rollouts[:2]
    assert matching(rollouts, {"pi": "pi-v3"}, 0.8) == rollouts[3:]
    assert compare(rollouts, played={"base": "base", "pi": "pi-v3"}).treatment_rate.solved == 0
    with pytest.raises(StoreError, match="nothing to compare"):
        compare(rollouts, played={"base": "base", "pi": "pi-v1"}, temperature=0.8)


def test_attempts_are_clustered_by_task(make_rollout: MakeRollout) -> None:
    rollouts = []
    for i in range(12):
        for attempt in range(4):
            rollouts += [
                make_rollout("base", f"f-{i}", i % 3 == 0, attempt=attempt),
                make_rollout("pi", f"f-{i}", i % 3 < 2, attempt=attempt),
            ]
    c = compare(rollouts)
    assert (c.tasks, c.pairs, c.attempts) == (12, 48, 4)
    assert c.mcnemar is None
    assert c.by_task.clusters == 12
    # Attempts that repeat each other tell nothing new: the interval is that of 12 single attempts.
    single = compare([r for r in rollouts if r.attempt == 0])
    assert c.by_task.standard_error == pytest.approx(single.by_task.standard_error)
    assert c.pass_at == {k: (pytest.approx(1 / 3), pytest.approx(2 / 3)) for k in (1, 2, 4)}


def test_nothing_to_compare_is_one_clear_line(make_rollout: MakeRollout) -> None:
    with pytest.raises(StoreError, match="no task has a scored session of both base and pi"):
        compare([make_rollout("base", "a-1", True), make_rollout("pi", "a-2", True)])


def test_json_is_strict(make_rollout: MakeRollout) -> None:
    c = compare([make_rollout("base", "a-1", True), make_rollout("pi", "a-1", True)])
    text = json.dumps(to_json(c), allow_nan=False)
    assert json.loads(text)["by_task"]["standard_error"] is None
