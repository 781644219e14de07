"""The parts that need no sandbox: faults, near-duplicates, privacy, stubs, splits, the journal."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.errors import StoreError
from harness_adapters.synthesis.assemble import split_groups
from harness_adapters.synthesis.gates.duplicates import Index, signature, similarity
from harness_adapters.synthesis.gates.guess import holds
from harness_adapters.synthesis.gates.lists import Decontamination
from harness_adapters.synthesis.gates.mutants import mutants
from harness_adapters.synthesis.gates.strength import changed_lines, hunks, tidy
from harness_adapters.synthesis.journal import CandidateRecord, GateRecord, Journal, SessionRecord
from harness_adapters.synthesis.miners.stubs import stub_module, with_stubs
from harness_adapters.synthesis.privacy import PrivateError, cleaned
from harness_adapters.tasks import Split
from synthesis.candidates import BROKEN, FIXED, output, repair

# ---------------------------------------------------------------- faults


def what(source: str) -> set[str]:
    lines = set(range(1, source.count("\n") + 2))
    return {mutant.source.strip() for mutant in mutants(source, lines)}


def test_each_operator_has_its_fault() -> None:
    assert "a = b <= 1" in what("a = b < 1")
    assert "a = b < 2" in what("a = b < 1")
    assert "a = b - c" in what("a = b + c")
    assert "a = b or c" in what("a = b and c")
    assert "a = b" in what("a = not b")
    assert "a = 'x_'" in what("a = 'x'")
    assert "a = False" in what("a = True")
    assert "pass" in what("f(1)")
    assert "def f():\n    return None" in what("def f():\n    return 3 * x")
    assert "if not a:\n    b()" in what("if a:\n    b()")


def test_what_people_read_is_left_alone() -> None:
    assert what('"""Documentation."""') == set()
    assert what("a: 'int'") == set()
    assert what("if __name__ == '__main__':\n    pass") == set()
    assert what("raise ValueError('no number 3')") == {"pass"}
    assert not any("so_" in each for each in what("parser.add(1, help='so')"))


def test_faults_stay_on_the_lines_asked_for() -> None:
    source = "a = 1\nb = 2\n"
    assert {mutant.line for mutant in mutants(source, {2})} == {2}
    assert all(ast.parse(mutant.source) for mutant in mutants(source, {1, 2}))


@given(st.integers(0, 20))
def test_every_fault_is_a_program_that_differs(seed: int) -> None:
    source = f"def f(a, b):\n    x = a * {seed} + b\n    return x if x > {seed} else [a, b]\n"
    found = list(mutants(source, {2, 3}))
    assert len(found) >= 5
    assert all(ast.dump(ast.parse(one.source)) != ast.dump(ast.parse(source)) for one in found)


def test_changed_lines_and_hunks() -> None:
    assert changed_lines(b"a\nb\nc\n", b"a\nB\nc\nd\n") == {2, 4}
    one = repair(
        before={"a.py": b"x = 1\ny = 1\nz = 1\n"}, after={"a.py": b"x = 2\ny = 1\nz = 2\n"}
    )
    assert [hunk.without for hunk in hunks(one)] == [
        b"x = 1\ny = 1\nz = 2\n",
        b"x = 2\ny = 1\nz = 1\n",
    ]


def test_tidy_takes_back_what_changes_no_behaviour() -> None:
    after = FIXED.replace(b'"""Money in cents."""', b'"""Money."""  # in cents').replace(
        b"    rest = ", b"    # the remainder\n    rest = "
    )
    one = tidy(repair(after={"bill.py": after, "README.md": b"# New\n", "new.py": b"X = 1\n"}))
    assert one.after == {"bill.py": FIXED, "new.py": b"X = 1\n"}
    assert tidy(repair(after={"bill.py": BROKEN + b"# end\n"})).after == {}


# ---------------------------------------------------------------- near-duplicates

WORDS = " ".join(f"word{number}" for number in range(300))


def test_near_duplicates_are_found_and_others_are_not() -> None:
    index = Index()
    index.add("one", signature(WORDS))
    assert index.near(signature(WORDS)) == ("one", 1.0)
    near = index.near(signature(WORDS.replace("word7 ", "other ").replace("word170 ", "")))
    assert near is not None and near[0] == "one" and near[1] < 1
    half = " ".join(WORDS.split()[:150] + [f"new{number}" for number in range(150)])
    assert index.near(signature(half)) is None
    assert index.near(signature("something else entirely")) is None


@settings(max_examples=30)
@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=5, max_size=60), st.data())
def test_the_estimate_is_near_the_jaccard_similarity(words: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(3, len(words)))

    def shingles(text: list[str]) -> set[tuple[str, ...]]:
        return {tuple(text[i : i + 3]) for i in range(max(1, len(text) - 2))}

    one, other = shingles(words), shingles(words[:cut])
    true = len(one & other) / len(one | other)
    estimate = similarity(signature(" ".join(words)), signature(" ".join(words[:cut])))
    assert abs(true - estimate) < 0.25


# ---------------------------------------------------------------- privacy


def test_private_values_are_replaced_everywhere_alike() -> None:
    # put together here, so that no scanner takes this file for a leak
    secret, mail = "sk-" + "a1B2" * 8, "jane.doe" + "@corp-mail.net"
    home = "/home/" + "janedoe"
    source = f'KEY = "{secret}"\nMAIL = "{mail}"\nROOT = "{home}/x"\n'.encode()
    one = repair(
        instruction=f"Write to {mail}: the key {secret} in {home}/x is refused. Repair that.",
        before={"bill.py": source},
        hidden={"test_bill.py": source},
    )
    clean, count = cleaned(one)
    assert count == 3
    text = clean.instruction + clean.before["bill.py"].decode()
    assert not any(private in text for private in (secret, mail, "janedoe"))
    assert clean.before["bill.py"] == clean.hidden["test_bill.py"]
    assert "user" in clean.instruction and "/home/user/x" in clean.instruction


def test_ordinary_code_stays_as_it_is() -> None:
    one = repair(
        instruction="Mail user@example.com, git@github.com:a/b, /home/user/x, token = next(it).",
        before={"a.py": b"password = getpass()\ntoken: str = ''\n@pytest.fixture\n"},
    )
    assert cleaned(one) == (one, 0)


def test_what_cant_be_replaced_is_refused() -> None:
    key = b"AKIA" + b"Q7" * 8
    with pytest.raises(PrivateError):
        cleaned(repair(before={"a.bin": b"\xff\xfe " + key}))
    with pytest.raises(PrivateError):
        cleaned(repair(before={"x@corp-mail.net.txt": b"x@corp-mail.net"}))


# ---------------------------------------------------------------- contracts

MODULE = '''\
import re

LIMIT = 7
_own = 3


class Counter:
    """Counts."""

    size: int = 0

    def add(self, x: int) -> int:
        """Add one."""
        return self._more(x) + LIMIT

    def _more(self, x):
        return x


def run(text, *, deep=False):
    return re.findall("x", text)
'''


def test_a_stub_is_the_face_without_the_bodies() -> None:
    stub = stub_module(MODULE)
    assert stub is not None
    compile(stub, "stub", "exec")
    assert "def run(text, *, deep=False):\n    raise NotImplementedError" in stub
    assert "Add one." in stub and "LIMIT = ..." in stub
    assert "_more" not in stub and "_own" not in stub and "findall" not in stub
    assert stub_module("print(1)\n") is None and stub_module("def (:") is None


def test_stubs_are_added_where_a_module_lacks_them() -> None:
    old = MODULE.split("\n\ndef run")[0] + "\n"
    new = MODULE.replace(
        "    def _more",
        '    def drop(self, y):\n        """Less."""\n        return y\n\n    def _more',
    )
    both = with_stubs(old, new)
    assert both.startswith(old.split("    def _more")[0])
    names = [node.name for node in ast.walk(ast.parse(both)) if isinstance(node, ast.FunctionDef)]
    assert sorted(names) == ["_more", "add", "drop", "run"]
    assert both.count("raise NotImplementedError") == 2
    assert with_stubs(new, new) == new


# ---------------------------------------------------------------- guesses, names, splits


def test_a_guess_counts_when_it_names_the_value() -> None:
    assert holds("I'd say 1,234.", "1234")
    assert holds("Oslo", "oslo")
    assert not holds("12345", "1234") and not holds("1234.5", "1234")


@pytest.mark.parametrize(
    "name",
    ["django__django-10973", "princeton-nlp/SWE-bench_Lite", "HumanEval/12", "cd /testbed && ls"],
)
def test_evaluations_are_known_by_name(name: str) -> None:
    assert Decontamination().name_in(name)


def test_ordinary_names_are_no_evaluations() -> None:
    assert not Decontamination().name_in("test__init__py", "my bench", "a/b-12", "__main__")


@given(st.sets(st.text("abcdef", min_size=1, max_size=6), min_size=3, max_size=60))
def test_every_group_has_one_split_and_no_split_is_empty(groups: set[str]) -> None:
    splits = split_groups(groups)
    assert set(splits) == groups
    assert set(splits.values()) == set(Split)
    assert sum(split is Split.TRAIN for split in splits.values()) >= len(groups) * 0.6 - 1


# ---------------------------------------------------------------- the journal

RECORD = SessionRecord(
    key="k1",
    source="a.jsonl",
    session="s",
    group="s",
    format="pi",
    licence="MIT",
    outcome="kept",
    detail="",
    candidates=(
        CandidateRecord(
            "repair", "repair-1", "", "", gates=(GateRecord("size", "", "", 0.1, {"files": 2}),)
        ),
    ),
)


def test_the_journal_gives_back_what_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j" / "journal.jsonl")
    assert list(journal.records()) == []
    journal.add(RECORD)
    journal.add(replace(RECORD, key="k2"))
    assert list(journal.records()) == [RECORD, replace(RECORD, key="k2")]


def test_a_line_cut_by_a_crash_is_left_out_and_replaced(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.add(RECORD)
    with journal.path.open("ab") as file:
        file.write(b'{"key": "half')
    assert list(journal.records()) == [RECORD]
    journal.add(replace(RECORD, key="k2"))
    assert [each.key for each in journal.records()] == ["k1", "k2"]
    with journal.path.open("ab") as file:
        file.write(b'{"key": 3}\n')
    with pytest.raises(StoreError, match="line 3"):
        list(journal.records())


def test_an_id_depends_on_all_that_makes_the_task() -> None:
    ids = {repair().id, output().id, repair(hidden={}).id, repair(instruction="Other.").id}
    assert len(ids) == 4 and repair().id == repair(later="x").id
