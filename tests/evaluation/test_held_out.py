import dataclasses
from pathlib import Path

import pytest

from harness_adapters.errors import TaskError
from harness_adapters.evaluation.held_out import (
    Fingerprint,
    check_held_out,
    check_unseen,
    fingerprint,
    similarity,
    unseen_families,
)
from harness_adapters.tasks import load_dataset, starter
from harness_adapters.tasks.task import Split, Task


def task(root: Path, name: str, *, instruction: str = "", data: str = "1,2\n") -> Task:
    directory = root / name
    (directory / "environment" / "files").mkdir(parents=True)
    (directory / "environment" / "files" / "data.csv").write_text(data)
    return Task(
        id=name, root=directory, instruction=instruction or f"Sum the file for {name}.",
        workdir="/app", family="sum", level=1, seed=0, split=Split.TRAIN, agent_timeout=60,
        verifier_timeout=60, memory_mb=512, oracle=(),
    )  # fmt: skip


def test_disjoint_splits_pass(tmp_path: Path) -> None:
    check_held_out([task(tmp_path, "a")], [task(tmp_path, "b")], [task(tmp_path, "c")])


def test_copies_under_another_name_are_refused(tmp_path: Path) -> None:
    train = task(tmp_path, "a", instruction="Sum it.")
    test = task(tmp_path, "z", instruction="Sum it.")
    with pytest.raises(TaskError, match="test task z is not held out: the train task a"):
        check_held_out([train], [], [test])
    with pytest.raises(TaskError, match="validation task z is not held out"):
        check_held_out([train], [test], [])


def test_a_link_is_not_the_file_it_points_to(tmp_path: Path) -> None:
    train, test = task(tmp_path, "a", instruction="Sum."), task(tmp_path, "b", instruction="Sum.")
    data = test.files / "data.csv"
    data.rename(tmp_path / "data.csv")
    data.symlink_to(tmp_path / "data.csv")
    check_held_out([train], [], [test])


def test_the_same_id_in_two_splits_is_refused(tmp_path: Path) -> None:
    one = task(tmp_path / "x", "a", instruction="Sum it.")
    two = task(tmp_path / "y", "a", instruction="Another.")
    with pytest.raises(TaskError, match="same id or content"):
        check_held_out([one], [], [two])


WORDS = [f"word{i}" for i in range(400)]


def near(root: Path, name: str, *, other_words: int, other_lines: int, **more: str) -> Task:
    """A task of 40 words and 100 lines, some of which are its own."""
    words = [f"own{i}" if i < other_words else WORDS[i] for i in range(40)]
    lines = [f"own {i} line" if i < other_lines else f"{WORDS[i]} line" for i in range(100)]
    made = task(root, name, instruction=" ".join(words), data="\n".join(lines))
    return dataclasses.replace(made, **more)  # type: ignore[arg-type]


def test_near_duplicates_are_refused(tmp_path: Path) -> None:
    train = near(tmp_path, "a", other_words=0, other_lines=0)
    test = near(tmp_path, "z", other_words=1, other_lines=2)
    with pytest.raises(TaskError, match=r"test task z .* train task a is nearly the same"):
        check_held_out([train], [], [dataclasses.replace(test, split=Split.TEST)])


def test_spelling_is_no_difference(tmp_path: Path) -> None:
    train = task(tmp_path, "a", instruction="Sum the file!")
    test = task(tmp_path, "z", instruction="  SUM   the file !")
    with pytest.raises(TaskError, match="nearly the same"):
        check_held_out([train], [], [test])


@pytest.mark.parametrize(("words", "lines"), [(8, 0), (0, 30)])
def test_another_question_or_other_files_are_another_task(
    tmp_path: Path, words: int, lines: int
) -> None:
    train = near(tmp_path, "a", other_words=0, other_lines=0)
    test = near(tmp_path, "z", other_words=words, other_lines=lines)
    check_held_out([train], [], [test])


def test_one_source_session_in_two_splits_is_refused(tmp_path: Path) -> None:
    train = near(tmp_path, "a", other_words=0, other_lines=0, session="traces/17")
    test = near(tmp_path, "z", other_words=40, other_lines=100, session="traces/17")
    with pytest.raises(TaskError, match="same source session traces/17"):
        check_held_out([train], [], [test])
    check_held_out([train, test], [], [])


def test_an_adapter_carries_what_it_was_trained_on(tmp_path: Path) -> None:
    seen = task(tmp_path, "a", instruction="Sum it.")
    copy = Fingerprint.from_json(fingerprint(seen).to_json())
    assert copy == fingerprint(seen)
    with pytest.raises(TaskError, match="train task a of adapter pi-v3 has the same id or content"):
        check_unseen([copy], [task(tmp_path, "z", instruction="Sum it.")], "pi-v3")
    check_unseen([copy], [task(tmp_path, "y", instruction="Count it.")], "pi-v3")
    assert unseen_families([copy], [dataclasses.replace(seen, family="new"), seen]) == {"new"}
    assert unseen_families([], [seen]) == set()


def test_similarity_is_exact_for_short_texts_and_close_for_long_ones(tmp_path: Path) -> None:
    assert similarity([1, 2, 3], [2, 3, 4]) == 0.5
    assert similarity([], []) == 1
    a = fingerprint(near(tmp_path, "a", other_words=0, other_lines=0)).files
    b = fingerprint(near(tmp_path, "b", other_words=0, other_lines=50)).files
    assert similarity(a, b) == pytest.approx(1 / 3, abs=0.1)  # 50 of 150 lines


def test_the_starter_suite_is_held_out(tmp_path: Path) -> None:
    starter.write(tmp_path / "s", seed=0, train=240, validation=48, test=160, families=None)
    dataset = load_dataset(tmp_path / "s")
    check_held_out(*(dataset.split(split) for split in Split))
