"""What miners see in a session: its requests, calls and the files that its log gives."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.synthesis.candidate import Candidate, TaskType
from harness_adapters.synthesis.miners import Draft, Found, Lack, Refusal
from harness_adapters.synthesis.miners.elsewhere import repairs_elsewhere
from harness_adapters.synthesis.miners.projects import build, extend
from harness_adapters.synthesis.miners.questions import facts
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.session import Result, Said, Session, Speaker, ToolCall, Turn
from synthesis.candidates import BROKEN, FIXED, TESTS

PASSED = "3 passed in 0.01s"
SALES = "city,amount\nRome,117\nOslo,205\nRome,391\n"


def call(name: str, answer: str = "ok", code: int | None = None, **given: Any) -> ToolCall:
    made = make_call("1", name, given)
    result = Result(answer, exit_code=code, failed=code not in (None, 0))
    return ToolCall(made.id, name, made.kind, given, result, command=made.command)


def session(*requests: tuple[str, list[ToolCall]]) -> Timeline:
    turns = tuple(
        Turn(number, (Said(Speaker.USER, text),), "Done.", "", tuple(calls))
        for number, (text, calls) in enumerate(requests)
    )
    return Timeline(Session("s", "pi", "log", turns, cwd="/app"))


def shell(command: str, answer: str = "", code: int | None = 0) -> ToolCall:
    return call("bash", answer, code, command=command)


READ = call("read", BROKEN.decode(), path="bill.py")
EDIT = call("edit", path="bill.py", oldText="i <= rest", newText="i < rest")
TEST = call("write", "created", path="test_bill.py", content=TESTS.decode())
RUN = shell("python3 -m pytest -q", PASSED)


def of(found: list[Found], kind: type) -> list[Any]:
    return [one for one in found if isinstance(one, kind)]


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("Fix the shares of a bill, please.", TaskType.REPAIR),
        ("Let the shares of a bill be as even as can be.", TaskType.EXTEND),
    ],
)
def test_a_change_with_its_tests_needs_no_recorded_failure(asked: str, kind: TaskType) -> None:
    """Whether the tests fail without it, the gates find out."""
    settings = call("read", "{}\n", path=".claude/settings.json")
    line = session((asked, [settings, READ, EDIT, TEST, RUN]))
    [one] = list(extend(line, "MIT"))
    assert isinstance(one, Candidate) and one.type is kind
    assert (one.before, one.after) == ({"bill.py": BROKEN}, {"bill.py": FIXED})
    assert one.hidden == {"test_bill.py": TESTS} and asked in one.instruction
    assert list(build(line, "MIT")) == []


def test_a_failure_that_was_watched_is_left_to_repairs() -> None:
    failed = shell("python3 -m pytest -q", "1 failed, 2 passed", 1)
    line = session(("Fix the shares of a bill, please.", [READ, TEST, failed, EDIT, RUN]))
    assert list(extend(line, "MIT")) == []


def test_a_change_without_tests_waits_for_a_writer() -> None:
    line = session(
        ("Show me bill.py.", [READ]), ("Make the shares as even as can be.", [EDIT, shell("ls")])
    )
    [one] = list(extend(line, "MIT"))
    assert isinstance(one, Draft) and one.lacks is Lack.TESTS
    assert one.candidate.after == {"bill.py": FIXED} and one.candidate.hidden == {}
    made = call("write", "created", path="hello.py", content="def hello():\n    return 'Hello'\n")
    [first] = list(build(session(("Write a greeting.", [made])), "MIT"))
    assert isinstance(first, Draft) and first.candidate.type is TaskType.BUILD
    assert b"NotImplementedError" in first.candidate.before["hello.py"]


@pytest.mark.parametrize(
    ("command", "failure", "success", "name"),
    [
        (
            "go test ./...",
            "--- FAIL: TestAdd (0.00s)\nFAIL",
            "ok  \tx.io/add\t0.1s",
            "go test (Go)",
        ),
        ("mise run test", "FAIL\tx.io/a/b\t0.1s\nFAIL", "ok  \tx.io/a/b\t0.1s", "go test (Go)"),
        ("npm run check", "a.ts(1,2): error TS2304: no", "> tsc --noEmit\n", "tsc (JavaScript or"),
        ("cd /app && bun test a.test.ts", " 1 fail", " 3 pass\n 0 fail", "bun test (JavaScript or"),
        ("cargo test", "test result: FAILED.", "test result: ok.", "cargo (Rust)"),
    ],
)
def test_checks_of_other_languages_are_named(
    command: str, failure: str, success: str, name: str
) -> None:
    edit = call("write", "created", path="add.go", content="package add\n")
    line = session(
        ("Make it work.", [shell(command, failure, 1), edit, shell(command, success, 0)])
    )
    [one] = list(repairs_elsewhere(line, "MIT"))
    assert isinstance(one, Refusal) and one.reason is Reason.LANGUAGE
    assert one.detail.startswith(name) and one.detail.endswith("1 of 1 changed files known")
    piped = [shell(f"{command} | tail", text, 0) for text in (failure, success)]
    assert len(list(repairs_elsewhere(session(("Do it.", piped)), "MIT"))) == 1 or "tsc" in name


def test_words_about_checks_are_no_checks() -> None:
    said = "git commit -F - <<EOF\ngo test ./... fails\nEOF"
    calls = [shell(said, "", 1), shell(said, "", 0)]
    assert list(repairs_elsewhere(session(("Commit it.", calls)), "MIT")) == []


def test_a_value_that_nobody_asked_for_waits_for_its_question(tmp_path: Path) -> None:
    read = call("read", SALES, path="sales.csv")
    line = session(
        (
            "Look at the sales.",
            [
                read,
                shell("wc -l sales.csv", "4 sales.csv\n"),
                shell("cd /app && grep -n Oslo sales.csv", "3:Oslo,205\n"),
                shell("wc -l sales.csv", "4 sales.csv\n"),
                shell("wc -l other.csv", "9 other.csv\n"),
                shell("wc -l sales.csv > count; cat count", "4 sales.csv\n"),
                shell("head -n 1 sales.csv", "city,amount\n"),
                shell("rm -r sales.csv && wc -l sales.csv", "0 sales.csv\n"),
            ],
        )
    )
    found = of(list(facts(line, "MIT")), Draft)
    assert [one.candidate.check.expected for one in found] == ["4", "3"]
    (tmp_path / "sales.csv").write_text(SALES)
    for one in found:
        assert one.lacks is Lack.QUESTION and one.candidate.data == ("sales.csv",)
        argv = ["bash", "-c", one.candidate.oracle_command]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == one.candidate.check.expected
    assert found[0].candidate.needs == ("python3", "wc", "head", "grep")
