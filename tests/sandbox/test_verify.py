from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError
from harness_adapters.paths import scratch_dir
from harness_adapters.sandbox import BwrapSandbox, verify

from .conftest import VALUE_TEST, score


@pytest.fixture
def tests(tmp_path: Path) -> Path:
    root = tmp_path / "tests"
    root.mkdir()
    (root / "test.sh").write_text(VALUE_TEST)
    (root / "expected.txt").write_text("42\n")
    return root


async def test_right_and_wrong_answers(lower: Path, tests: Path) -> None:
    right = await score(lower, tests, "echo 42 > answer.txt")
    assert (right.score, right.error) == (1.0, "") and right.seconds > 0
    wrong = await score(lower, tests, "echo 41 > answer.txt")
    assert (wrong.score, wrong.error) == (0.0, "")
    assert (await score(lower, tests, "true")).score == 0.0
    assert not list(scratch_dir().glob(f"*-{os.getpid()}-*"))


async def test_a_workspace_that_was_empty_at_first(machine: None, tests: Path) -> None:
    async with BwrapSandbox([]) as box:
        await box.exec(["/bin/bash", "-c", "ls -A; echo 42 > answer.txt"], env={}, timeout=20)
        frozen = box.freeze()
    with frozen:
        result = await verify(frozen, lowers=[], tests=tests, timeout=20)
    assert (result.score, result.error, result.timed_out) == (1.0, "", False)


async def test_the_verifier_sees_deletions(lower: Path, tests: Path) -> None:
    (tests / "test.sh").write_text(
        "[ -e old.txt ]; echo $? > /logs/verifier/reward.txt; ls; pwd; echo note >&2"
    )
    gone = await score(lower, tests, "rm old.txt")
    assert gone.score == 1.0 and gone.output == "data.txt\nsub\n/app\n\nnote\n"
    assert (await score(lower, tests, "true")).score == 0.0


async def test_no_valid_reward_is_none_with_the_reason(lower: Path, tests: Path) -> None:
    for script, reason in (
        ("exit 3", r"wrote no reward.*exit code 3"),
        ("echo 7 > /logs/verifier/reward.txt", "outside"),
        ("ln -s /tests/one /logs/verifier/reward.txt", "can't be read"),
    ):
        (tests / "one").write_text("1")
        (tests / "test.sh").write_text(script)
        result = await score(lower, tests, "true")
        assert result.score is None
        assert re.search(reason, result.error), result.error
        assert not result.timed_out


async def test_a_verifier_that_hangs_gives_none(lower: Path, tests: Path) -> None:
    (tests / "test.sh").write_text("echo 1 > /logs/verifier/reward.txt; echo begun; sleep 60")
    result = await score(lower, tests, "true", timeout=0.5)
    assert result.score is None and "longer than 0.5 seconds" in result.error
    assert result.timed_out
    assert result.output == "begun\n"


async def test_tests_are_read_only_and_unchanged(lower: Path, tests: Path) -> None:
    (tests / "test.sh").write_text(
        "echo x > /tests/new || echo 1 > /logs/verifier/reward.txt; ls -a ~ || true"
    )
    tests.chmod(0o700)
    assert (await score(lower, tests, "true")).score == 1.0
    assert not (tests / "new").exists()


async def test_hidden_tests_are_not_in_the_agents_sandbox(lower: Path, tests: Path) -> None:
    script = (
        "find / -path /usr -prune -o -path /proc -prune -o -name expected.txt -print > answer.txt"
    )
    async with BwrapSandbox([lower]) as box:
        await box.exec(["/bin/bash", "-c", script], env={}, timeout=60)
        result = await box.exec(["/bin/cat", "answer.txt"], env={}, timeout=5)
        assert result.stdout == b""


async def test_environment_command_and_workdir(lower: Path, tests: Path) -> None:
    script = 'pwd; echo "$HOME $PYTHONSAFEPATH $WANTED"; env | grep -c ^GIT_CONFIG_KEY'
    (tests / "other.sh").write_text(script + "; echo 0.5 > /logs/verifier/reward.txt")
    async with BwrapSandbox([lower], "/workspace") as box:
        frozen = box.freeze()
    with frozen:
        result = await verify(
            frozen,
            lowers=[lower],
            tests=tests,
            workdir="/workspace",
            command=["/bin/sh", "/tests/other.sh"],
            timeout=20,
            env={"WANTED": "yes"},
        )
        assert result.score == 0.5 and result.output == "/workspace\n/nonexistent 1 yes\n5\n"
        with pytest.raises(SandboxError, match="missing"):
            await verify(frozen, lowers=[lower], tests=tests / "no", timeout=5)
