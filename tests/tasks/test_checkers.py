from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness_adapters.tasks import Split, load_task
from harness_adapters.tasks.starter import write_task
from harness_adapters.tasks.starter.family import (
    Draft,
    number_in_file,
    program_output,
    python_behaviour,
)
from harness_adapters.tasks.task import Shell
from tasks.support import CHECKERS, checker, make_task


def _check(workdir: Path, check: dict) -> list[str]:
    check = dict(check)
    return checker(check.pop("kind")).check(workdir, **check)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("42", True),
        ("42\n", True),
        (" 42 \n", True),
        ("42.0", True),
        ("", False),
        ("42 43", False),
        ("42\n42\n", False),
        ("nan", False),
        ("inf", False),
        ("the answer is 42", False),
        ("41", False),
    ],
)
def test_number_in_file(tmp_path: Path, text: str, right: bool) -> None:
    (tmp_path / "answer.txt").write_text(text)
    assert (_check(tmp_path, number_in_file("answer.txt", 42)) == []) is right


@pytest.mark.parametrize(
    ("kind", "arguments", "text", "right"),
    [
        ("file_equals", {"text": "a b\n"}, "a b", True),
        ("file_equals", {"text": "a b\n"}, "a b  \n\n", True),
        ("file_equals", {"text": "a b\n"}, "A b", False),
        ("file_equals", {"text": "a\nb\n"}, "a\n\nb\n", False),
        ("lines_equal", {"lines": ["a", "b"], "ordered": True}, "a\nb\n", True),
        ("lines_equal", {"lines": ["a", "b"], "ordered": True}, "b\na\n", False),
        ("lines_equal", {"lines": ["a", "b"], "ordered": False}, "b\na\n", True),
        ("lines_equal", {"lines": ["a", "b"], "ordered": False}, "a\n", False),
        ("answer_is", {"answers": ["bob"]}, "Bob.\n", True),
        ("answer_is", {"answers": ["x/a.txt", "a.txt"]}, '"a.txt"\n', True),
        ("answer_is", {"answers": ["bob"]}, "bob and anna", False),
        ("answer_is", {"answers": ["bob"]}, "", False),
    ],
)
def test_text_checkers(tmp_path: Path, kind: str, arguments: dict, text: str, right: bool) -> None:
    (tmp_path / "f").write_text(text)
    assert (_check(tmp_path, {"kind": kind, "path": "f", **arguments}) == []) is right


def test_files_state(tmp_path: Path) -> None:
    check = {"kind": "files_state", "present": {"d/a": "1\n"}, "absent": ["a"]}
    (tmp_path / "a").write_text("1")
    assert len(_check(tmp_path, check)) == 2
    (tmp_path / "d").mkdir()
    (tmp_path / "a").rename(tmp_path / "d" / "a")
    assert _check(tmp_path, check) == []
    (tmp_path / "a").symlink_to("nowhere")
    assert _check(tmp_path, check) == ["a: still there"]


@pytest.mark.parametrize("kind", ["missing", "directory", "fifo", "link", "large", "binary"])
def test_odd_files_are_problems_not_crashes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "answer.txt"
    match kind:
        case "directory":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "link":
            path.symlink_to("/etc/hostname")
        case "large":
            path.write_bytes(b"1" * (2 << 20))
        case "binary":
            path.write_bytes(b"\xff\x00")
    [problem] = _check(tmp_path, number_in_file("answer.txt", 1))
    assert problem.startswith("answer.txt: ")


ADD = python_behaviour("m.py", [("add", (2, 3), 5), ("add", (-1, 1), 0)])


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def add(a, b): return a + b", None),
        ("print('noise')\ndef add(a, b):\n    print('more')\n    return a + b", None),
        ("def add(a, b): return a - b", "add(2, 3): expected 5, got -1"),
        ("def add(a, b): return str(a + b)", "expected 5, got '5'"),
        ("def add(a, b): return a + b == 5", "expected 5, got True"),
        ("def add(a): return 5", "TypeError"),
        ("def other(): pass", "AttributeError"),
        ("def add(a, b)", "SyntaxError"),
        ("raise SystemExit(0)", "no readable results"),
        ("import os; os._exit(0)", "no readable results"),
        ("while True: pass", "still running after"),
        ('print(\'[{"value": 5}, {"value": 0}]\'); raise SystemExit(0)', "no readable results"),
        (
            "class Same:\n    def __eq__(self, other): return True\ndef add(a, b): return Same()",
            "not JSON serializable",
        ),
        ("def add(a, b): return 10 ** 10 ** 10", "m.py"),
    ],
)
def test_python_behaviour(
    tmp_path: Path, source: str, says: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker("python_behaviour"), "_SECONDS", 1.5)
    (tmp_path / "m.py").write_text(source + "\n")
    found = _check(tmp_path, ADD)
    assert (found == []) if says is None else (found and says in found[0]), found


@pytest.mark.parametrize(
    ("source", "arguments", "stdout", "right"),
    [
        ("print('a b')", [], "a b\n", True),
        ("import sys; print(int(sys.argv[1]) * 3)", ["4"], "12\n", True),
        ("print(open('data.txt').read().upper())", [], "HELLO\n", True),
        ("print('a c')", [], "a b\n", False),
        ("import helper; print(helper.X)", [], "1\n", True),
        ("print('a b'); raise SystemExit(3)", [], "a b\n", False),
        ("print('x' * (3 << 20))", [], "x\n", False),
    ],
)
def test_program_output(
    tmp_path: Path, source: str, arguments: list[str], stdout: str, right: bool
) -> None:
    (tmp_path / "s.py").write_text(source + "\n")
    (tmp_path / "data.txt").write_text("hello\n")
    (tmp_path / "helper.py").write_text("X = 1\n")
    assert (_check(tmp_path, program_output("s.py", [(arguments, stdout)])) == []) is right


@pytest.mark.parametrize(
    "attack",
    [
        "open({secret!r}).read()",
        "open({reward!r}, 'w').write('1')",
        "__import__('os').kill(__import__('os').getppid(), 9)",
        "open('/proc/%d/mem' % __import__('os').getppid(), 'rb')",
        "open('written.txt', 'w')",
    ],
)
def test_candidates_are_confined(tmp_path: Path, attack: str) -> None:
    """What the candidate tries raises PermissionError inside the child."""
    secret, reward, workdir = tmp_path / "secret", tmp_path / "reward.txt", tmp_path / "app"
    secret.write_text("expected")
    reward.write_text("0\n")
    workdir.mkdir()
    line = attack.format(secret=str(secret), reward=str(reward))
    (workdir / "m.py").write_text(
        "def add(a, b):\n"
        "    try:\n"
        f"        {line}\n"
        "    except PermissionError:\n"
        "        return a + b\n"
        "    return 'broke out'\n"
    )
    assert _check(workdir, ADD) == []
    assert reward.read_text() == "0\n"


@pytest.mark.parametrize(("answer", "reward"), [("7", "1\n"), ("8", "0\n"), (None, "0\n")])
def test_check_writes_0_or_1_and_says_why(tmp_path: Path, answer: str | None, reward: str) -> None:
    one = Draft("x", {}, (Shell("true"),), (number_in_file("answer.txt", 7),))
    write_task(tmp_path / "task", one, Split.TRAIN, "csv_sum", 1, 0)
    task = load_task(tmp_path / "task")
    if answer is not None:
        (task.files / "answer.txt").write_text(answer)
    result = tmp_path / "reward.txt"
    done = subprocess.run(
        ["/usr/bin/python3", "-I", str(task.tests / "check.py"), str(task.files), str(result)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.read_text() == reward
    assert ("FAILED: answer.txt" in done.stdout) is (reward == "0\n")


def test_a_broken_check_scores_0(tmp_path: Path) -> None:
    root = make_task(tmp_path / "task")
    (root / "tests" / "check.py").write_text((CHECKERS / "check.py").read_text())
    (root / "tests" / "expected.json").write_text('[{"kind": "no_such_kind"}]')
    result = tmp_path / "reward.txt"
    done = subprocess.run(
        ["/usr/bin/python3", "-I", str(root / "tests" / "check.py"), str(tmp_path), str(result)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.read_text() == "0\n" and "the check itself failed" in done.stdout
