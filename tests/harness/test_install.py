import importlib.resources
import json
import re
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.harness import app
from harness_adapters.errors import HarnessError
from harness_adapters.harness import opencode, pi
from harness_adapters.harness.install import install
from harness_adapters.harness.registry import get_harness, known_harnesses
from harness_adapters.paths import harness_dir

LOCKS = Path(str(importlib.resources.files("harness_adapters.harness"))) / "locks"


def lock_name(path):
    return path.parent.name


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


@pytest.mark.parametrize("path", sorted(LOCKS.glob("*/package-lock.json")), ids=lock_name)
def test_npm_lock_files_hold_hashes_and_no_registry(path):
    lock = json.loads(path.read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
    assert not re.search(r"https?://[^\"]*\.tgz", path.read_text())
    wanted = json.loads(path.with_name("package.json").read_text())
    assert wanted == {key: lock["packages"][""].get(key, True) for key in wanted}
    direct = wanted.get("dependencies", {}) | wanted.get("optionalDependencies", {})
    for name, version in direct.items():
        assert packages[f"node_modules/{name}"]["version"] == version


@pytest.mark.parametrize(
    ("name", "package", "version"),
    [
        ("opencode", "opencode-linux-x64", opencode.VERSION),
        ("pi", "@earendil-works/pi-coding-agent", pi.VERSION),
    ],
)
def test_drivers_and_lock_files_agree_on_the_version(name, package, version):
    lock = json.loads((LOCKS / name / "package-lock.json").read_text())
    assert lock["packages"][f"node_modules/{package}"]["version"] == version
    assert get_harness(name).version == version


@pytest.mark.parametrize("name", known_harnesses())
def test_an_install_is_whole_and_readable_for_other_users(name):
    root = install(name)
    begun = [path for path in root.parent.iterdir() if path.name.startswith(f".{name}-")]
    assert begun == []
    for path in (root, *root.rglob("*")):
        mode = path.stat().st_mode
        assert mode & stat.S_IROTH
        assert not mode & stat.S_IWOTH


def test_pis_compile_cache_is_filled(pi):
    assert any(path.is_file() for path in (pi.installed() / "compile-cache").rglob("*"))


@pytest.mark.parametrize("name", known_harnesses())
def test_a_second_install_needs_neither_tools_nor_network(name, monkeypatch):
    where = install(name)
    monkeypatch.setenv("PATH", "/nonexistent")
    said = []
    assert install(name, say=said.append) == where == get_harness(name).installed()
    assert "is installed in" in said[0]


@pytest.mark.parametrize("name", ["opencode", "pi"])
def test_without_npm_one_line_says_what_to_do(home, monkeypatch, name):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(HarnessError, match=rf"npm is needed to install {name}; install Node.js"):
        install(name)


@pytest.mark.parametrize("word", ["error", "ERR!"])
def test_npms_last_error_line_is_told_and_nothing_stays(home, tmp_path, monkeypatch, word):
    log = f"npm {word} A complete log of this run can be found in: /x/_logs/y.log"
    lines = [f"npm {word} code E404", f"npm {word} 404 not found: pi", log]
    script = "\n".join(f"echo '{line}' >&2" for line in lines) + "\nexit 1"
    fake_npm(tmp_path, monkeypatch, script)
    with pytest.raises(HarnessError, match=r"^npm could not install pi: 404 not found: pi$"):
        install("pi")
    assert list((home / "harnesses").iterdir()) == []


@pytest.mark.parametrize("name", ["opencode", "pi"])
def test_an_npm_that_installs_nothing_is_found_out(home, tmp_path, monkeypatch, name):
    fake_npm(tmp_path, monkeypatch, "exit 0")
    with pytest.raises(HarnessError, match=r"npm installed no \w+ for this machine"):
        install(name)
    assert list((home / "harnesses").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("pi", "node-linux-*/bin/node"),
        ("opencode", "opencode-linux-*/bin/opencode @vscode/ripgrep-linux-*/bin/rg"),
    ],
)
def test_a_wrong_version_is_found_out(home, tmp_path, monkeypatch, name, files):
    made = [f"node_modules/{file}" for file in files.split()]
    script = "\n".join(
        f"mkdir -p {(path := file.replace('*', machine)).rpartition('/')[0]}\n"
        f"printf '#!/bin/sh\\necho 0.0.1\\n' > {path}; chmod +x {path}"
        for machine in ("x64", "arm64")
        for file in made
    )
    fake_npm(tmp_path, monkeypatch, script)
    wanted = re.escape(get_harness(name).version)
    with pytest.raises(HarnessError, match=rf"--version failed instead of {wanted}: 0\.0\.1"):
        install(name)
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
    assert "opencode 1.18.33  not installed" in listed.output
    failed = CliRunner().invoke(app, ["install", "vim"])
    assert isinstance(failed.exception, HarnessError)
