"""`harness-adapters synth`, as its users call it."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from harness_adapters.cli.main import app
from harness_adapters.errors import TraceError
from synthesis.traces import samples

KEYS = ["file", "format", "sessions", "turns", "tool_calls", "results", "exit_codes_known"]
KEYS += ["edits", "broken_lines", "error", "notes"]


def test_one_json_line_per_file_and_the_others_go_on(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(samples.codex().text)
    (tmp_path / "bad").write_text("nothing\n")
    (tmp_path / "last").write_text(samples.pi().text)
    files = [str(tmp_path / name) for name in ("good", "bad", "missing", "last")]
    result = CliRunner().invoke(app, ["synth", "read", *files, "--json"])
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [list(line) for line in lines] == [KEYS] * 4
    assert [line["file"] for line in lines] == files
    assert [line["format"] for line in lines] == ["codex", None, None, "pi"]
    assert [line["error"] is None for line in lines] == [True, False, False, True]
    assert result.exit_code == 1


def test_a_table_for_people(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(samples.codex().text)
    result = CliRunner().invoke(app, ["synth", "read", str(tmp_path)])
    assert result.exit_code == 0
    assert "codex" in result.stdout


def test_a_path_that_is_not_there_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "good").write_text(samples.codex().text)
    names = [str(tmp_path / "good"), str(tmp_path / "missing")]
    result = CliRunner().invoke(app, ["synth", *names, "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, TraceError)
    assert str(result.exception) == f"{names[1]}: no such file; check the path"
    assert not (tmp_path / "out").exists()
