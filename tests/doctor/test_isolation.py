from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_adapters.doctor import Check, Importance, run_checks
from harness_adapters.doctor.isolation import check_sandbox, check_tools


def test_missing_tools_are_named_with_their_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = check_tools()
    assert check.blocks
    assert "setpriv" in check.detail
    assert "util-linux" in check.remedy
    assert "git" in check.remedy


def test_a_real_sandbox_is_started() -> None:
    for check in check_sandbox():
        assert not check.blocks, check
    assert "one took" in check_sandbox()[0].detail


def test_a_machine_that_forbids_namespaces_is_told_what_to_do() -> None:
    code = (
        "from harness_adapters.doctor.isolation import check_sandbox\n"
        "for check in check_sandbox(): print(check.blocks, check.remedy, sep='|')"
    )
    forbid = 'echo 0 >/proc/sys/user/max_user_namespaces || exit 77; exec "$0" -c "$1"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", forbid, sys.executable, code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no user namespace to forbid it in: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        blocks, _, remedy = line.partition("|")
        assert blocks == "True"
        assert remedy


def test_every_failed_check_says_what_to_do() -> None:
    checks = run_checks()
    assert len({check.name for check in checks}) >= 10
    for check in checks:
        assert check.detail
        assert "\n" not in check.detail + check.remedy
        assert check.ok == (check.remedy == "")


@pytest.mark.parametrize(
    ("check", "code", "words"),
    [
        (Check("disk", True, "9 GiB"), 0, "can train"),
        (Check("engine", False, "none", "install it", Importance.WISHED), 0, "install it"),
        (Check("sandbox", False, "no [namespaces]", "allow them"), 1, "allow them"),
    ],
)
def test_exit_code_and_remedies(
    monkeypatch: pytest.MonkeyPatch, check: Check, code: int, words: str
) -> None:
    from typer import Typer

    from harness_adapters import doctor as package
    from harness_adapters.cli.doctor import doctor

    monkeypatch.setattr(package, "run_checks", lambda: [check])
    app = Typer()
    app.command()(doctor)
    result = CliRunner().invoke(app, [])
    assert result.exit_code == code
    assert words in result.output
    assert check.detail in result.output
