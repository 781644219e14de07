from __future__ import annotations

import dataclasses
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_adapters.errors import StoreError
from harness_adapters.records import (
    Decision,
    Phase,
    Rollout,
    SessionEnd,
    ToolCall,
    Turn,
    Verdict,
)
from harness_adapters.store import Store


def make_turn(index: int = 0) -> Turn:
    return Turn(
        index=index,
        prompt_ids=[1, 2, 2_000_000_000],
        output_ids=[5, 0],
        logprobs=[-0.5, -3.25],
        adapter="pi-v3",
        version=3,
        finish="stop",
        text="naïve\n<|im_end|>",
        calls=[
            ToolCall("c1", "bash", '{"command": "ls"}', Verdict(Decision.ALLOW, "none")),
            ToolCall("c2", "bash", "{", Verdict(Decision.BLOCK, "json", "not an object"), True),
        ],
        new_messages=[{"role": "user", "content": "hé"}, {"role": "assistant", "content": None}],
        started=12.5,
        seconds=0.25,
        cached_tokens=2,
    )


def make_rollout(name: str = "r1", **changes: object) -> Rollout:
    rollout = Rollout(
        id=name,
        phase=Phase.TRAIN,
        harness="pi",
        profile="lean",
        arm="pi",
        adapter="pi-v3",
        version=3,
        task="csv-count-1",
        family="csv-count",
        level=1,
        group="g1",
        attempt=0,
        step=4,
        temperature=1.0,
        score=1.0,
        reward=1.08,
        correct=True,
        calls=2,
        end=SessionEnd.FINISHED,
        error="",
        turns=[make_turn(0), make_turn(1)],
        verifier_output="ok",
        started=10.0,
        seconds=3.5,
        timings={"agent": 3.0},
    )
    return dataclasses.replace(rollout, **changes)  # type: ignore[arg-type]  # test data


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "run")


def test_a_rollout_comes_back_equal(store: Store) -> None:
    scored = make_rollout("a")
    failed = make_rollout(
        "b", score=None, reward=None, correct=None, end=SessionEnd.API_ERROR, error="died", turns=[]
    )
    store.add(scored)
    store.add(failed)
    assert store.rollouts() == [scored, failed]
    reopened = Store.existing(store.root)
    assert reopened.rollouts() == [scored, failed]


@given(
    prompt=st.lists(st.integers(0, 2**31 - 1), max_size=50),
    sampled=st.lists(
        st.tuples(st.integers(0, 2**31 - 1), st.floats(-1e4, 0, width=32)), max_size=50
    ),
    text=st.text(st.characters(blacklist_categories=("Cs",))),
)
def test_token_ids_are_exact_and_logprobs_are_float32(
    tmp_path_factory: pytest.TempPathFactory,
    prompt: list[int],
    sampled: list[tuple[int, float]],
    text: str,
) -> None:
    turn = dataclasses.replace(
        make_turn(),
        prompt_ids=prompt,
        output_ids=[i for i, _ in sampled],
        logprobs=[p for _, p in sampled],
        text=text,
    )
    store = Store(tmp_path_factory.mktemp("run"))
    store.add(make_rollout(turns=[turn]))
    assert store.rollouts()[0].turns == [turn]
    store.close()


def test_filters(store: Store) -> None:
    store.add(make_rollout("late", started=30.0, phase=Phase.TEST, arm="base", step=0))
    store.add(make_rollout("early", started=20.0, phase=Phase.TEST, arm="pi", step=0))
    store.add(make_rollout("train", started=25.0, step=7, harness="hermes"))

    def ids(**filters: object) -> list[str]:
        return [r.id for r in store.rollouts(**filters)]  # type: ignore[arg-type]  # test data

    assert ids() == ["early", "train", "late"]
    assert ids(phase=Phase.TEST) == ["early", "late"]
    assert ids(phase=Phase.TEST, arm="base") == ["late"]
    assert ids(step=7) == ["train"]
    assert ids(step=0, harness="hermes") == []
    assert ids(ids=["late", "train", "unknown"]) == ["train", "late"]
    assert ids(ids=[]) == []


def test_turns_can_be_left_out(store: Store) -> None:
    store.add(make_rollout())
    assert store.rollouts(turns=False) == [make_rollout(turns=[])]


def test_the_same_id_replaces_with_all_its_turns(store: Store) -> None:
    store.add(make_rollout())
    shorter = make_rollout(turns=[make_turn()], calls=1)
    store.add(shorter)
    assert store.rollouts() == [shorter]


def test_a_rollout_that_cannot_be_written_leaves_nothing(store: Store) -> None:
    twice = make_rollout(turns=[make_turn(0), make_turn(0)])
    with pytest.raises(StoreError, match=str(store.root)):
        store.add(twice)
    assert store.rollouts() == []
    store.add(make_rollout())
    assert len(store.rollouts()) == 1


def test_kill_while_writing_leaves_whole_rollouts_only(tmp_path: Path) -> None:
    root = tmp_path / "run"
    script = textwrap.dedent(
        f"""
        import itertools, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from test_store import make_rollout
        from harness_adapters.store import Store
        store = Store(Path({str(root)!r}))
        for i in itertools.count():
            store.add(make_rollout(f"r{{i}}", started=float(i)))
            if i == 20:
                print("going", flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"going\n"
        time.sleep(0.05)
        os.kill(writer.pid, signal.SIGKILL)
    rollouts = Store.existing(root).rollouts()
    assert len(rollouts) >= 21
    for i, rollout in enumerate(rollouts):
        assert rollout == make_rollout(f"r{i}", started=float(i))


def test_another_process_may_read_while_one_writes(store: Store) -> None:
    store.add(make_rollout())
    reader = Store.existing(store.root)
    with store._transaction():
        assert len(reader.rollouts()) == 1


def test_facts(store: Store) -> None:
    assert store.fact("best") is None
    assert store.fact("best", 3) == 3
    store.set_fact("best", {"step": 4, "gain": 0.25})
    store.set_fact("best", {"step": 8})
    assert Store.existing(store.root).fact("best") == {"step": 8}


def test_metrics_survive_a_line_cut_by_a_kill(store: Store) -> None:
    assert store.metrics() == []
    store.append_metrics({"step": 1, "loss": 0.5})
    with (store.root / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')
    assert store.metrics() == [{"step": 1, "loss": 0.5}]


def test_the_next_metrics_line_after_a_cut_one_is_kept(store: Store) -> None:
    with (store.root / "metrics.jsonl").open("w") as file:
        file.write('{"step": 1, "lo')
    store.append_metrics({"step": 2})
    assert store.metrics() == [{"step": 2}]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run directory"):
        Store.existing(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_and_a_damaged_database_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="run directory"):
        Store(tmp_path / "file" / "run")
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    (damaged / "run.sqlite").write_bytes(b"not a database, and long enough to be read as one" * 20)
    with pytest.raises(StoreError, match="run directory"):
        Store.existing(damaged)


def test_a_full_disk_is_a_store_error_and_a_second_try_works(store: Store) -> None:
    store.add(make_rollout("a"))
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages}")
    big = make_rollout("b", verifier_output="x" * 200_000)
    with pytest.raises(StoreError, match="full"):
        store.add(big)
    store._db.execute("PRAGMA max_page_count = 100000")
    store.add(big)
    assert [r.id for r in store.rollouts()] == ["a", "b"]


def test_the_schema_is_readable_without_this_package(store: Store) -> None:
    store.add(make_rollout())
    rows = (
        sqlite3.connect(store.root / "run.sqlite")
        .execute("SELECT rollouts.task, turns.calls FROM rollouts JOIN turns ON rollout = id")
        .fetchall()
    )
    assert [task for task, _ in rows] == ["csv-count-1", "csv-count-1"]
    assert json.loads(rows[0][1])[0][1] == "bash"


def test_a_run_directory_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    kept = make_rollout("old")
    store.add(kept)
    store.close()
    db = sqlite3.connect(tmp_path / "run.sqlite")
    for column in ("conduct", "blocked", "malformed"):
        db.execute(f"ALTER TABLE rollouts DROP COLUMN {column}")
    for idx, calls in db.execute("SELECT idx, calls FROM turns").fetchall():
        short = json.dumps([call[:7] for call in json.loads(calls)])
        db.execute("UPDATE turns SET calls = ? WHERE idx = ?", (short, idx))
    db.commit()
    db.close()
    store = Store(tmp_path)
    assert store.rollouts() == [kept]
    store.add(kept)
    assert store.rollouts() == [kept]
    store.close()
