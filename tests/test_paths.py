from __future__ import annotations

from pathlib import Path

import pytest

from harness_adapters import paths


def test_home_variable_wins_over_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert paths.data_dir() == tmp_path / "xdg" / "harness-adapters"
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "own"))
    assert paths.data_dir() == tmp_path / "own"
    assert paths.harness_dir("pi", "1.6.0") == tmp_path / "own" / "harnesses" / "pi-1.6.0"
    assert paths.models_dir() == tmp_path / "own" / "models"


def test_without_variables_it_is_under_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HARNESS_ADAPTERS_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert paths.data_dir() == Path("/home/somebody/.local/share/harness-adapters")


def test_relative_home_becomes_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", "here")
    assert paths.data_dir() == tmp_path / "here"


def test_scratch_is_private_to_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    assert paths.scratch_dir().name == f"harness-adapters-{os.getuid()}"
