from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness_adapters.errors import SandboxError
from harness_adapters.sandbox import read_reward


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("reward.txt", "1", 1.0),
        ("reward.txt", " 0.25\n", 0.25),
        ("reward.txt", "0", 0.0),
        ("reward.txt", "1e-1", 0.1),
        ("reward.txt", "-0.0", 0.0),
        ("reward.json", "0.5", 0.5),
        ("reward.json", '{"reward": 1}', 1.0),
        ("reward.json", ' {"reward": 0.75}\n', 0.75),
    ],
)
def test_valid(tmp_path: Path, name: str, content: str, expected: float) -> None:
    (tmp_path / name).write_text(content)
    assert read_reward(tmp_path) == expected


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("reward.txt", "", "not one number"),
        ("reward.txt", "1 1", "not one number"),
        ("reward.txt", "nan", "not one number"),
        ("reward.txt", "inf", "not one number"),
        ("reward.txt", "1_0", "not one number"),
        ("reward.txt", "0x1", "not one number"),
        ("reward.txt", "\u0661", "not one number"),
        ("reward.txt", "1e999", "outside"),
        ("reward.txt", "1000", "outside"),
        ("reward.txt", "-0.1", "outside"),
        ("reward.txt", "1" * 70_000, "larger than 64 KiB"),
        ("reward.json", "NaN", "not valid JSON"),
        ("reward.json", "Infinity", "not valid JSON"),
        ("reward.json", '{"reward": NaN}', "not valid JSON"),
        ("reward.json", '{"reward": 0, "reward": 1}', "not valid JSON"),
        ("reward.json", "[" * 60_000, "not valid JSON"),
        ("reward.json", "{", "not valid JSON"),
        ("reward.json", "true", "no number"),
        ("reward.json", '"1"', "no number"),
        ("reward.json", "[1]", "no number"),
        ("reward.json", '{"reward": true}', "no number"),
        ("reward.json", '{"reward": "1"}', "no number"),
        ("reward.json", '{"score": 1}', "must be a number or"),
        ("reward.json", '{"reward": 1, "more": 2}', "must be a number or"),
        ("reward.json", '{"reward": 1.01}', "outside"),
        ("reward.json", "1e400", "outside"),
        ("reward.json", "9" * 5000, "not valid JSON|outside"),
    ],
)
def test_invalid(tmp_path: Path, name: str, content: str, reason: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(SandboxError, match=reason):
        read_reward(tmp_path)


def test_not_text(tmp_path: Path) -> None:
    for name in ("reward.txt", "reward.json"):
        (tmp_path / name).write_bytes(b"\xff\xfe1")
        with pytest.raises(SandboxError):
            read_reward(tmp_path)
        (tmp_path / name).unlink()


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="wrote no reward"):
        read_reward(tmp_path)
    with pytest.raises(SandboxError, match="No such file"):
        read_reward(tmp_path / "none")


def test_only_a_regular_file_counts(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("1")
    (tmp_path / "reward.txt").symlink_to("real")
    with pytest.raises(SandboxError, match=r"reward\.txt can't be read"):
        read_reward(tmp_path)
    (tmp_path / "reward.txt").unlink()
    os.mkfifo(tmp_path / "reward.txt")
    with pytest.raises(SandboxError, match="not a regular file"):
        read_reward(tmp_path)
    (tmp_path / "reward.txt").unlink()
    (tmp_path / "reward.txt").mkdir()
    with pytest.raises(SandboxError, match=r"not a regular file|can't be read"):
        read_reward(tmp_path)


def test_the_directory_itself_is_no_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "reward.txt").write_text("1")
    (tmp_path / "link").symlink_to(real)
    with pytest.raises(SandboxError):
        read_reward(tmp_path / "link")


def test_two_files_must_agree(tmp_path: Path) -> None:
    (tmp_path / "reward.txt").write_text("1")
    (tmp_path / "reward.json").write_text('{"reward": 1.0}')
    assert read_reward(tmp_path) == 1.0
    (tmp_path / "reward.json").write_text('{"reward": 0}')
    with pytest.raises(SandboxError, match="disagree"):
        read_reward(tmp_path)
