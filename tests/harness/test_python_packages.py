"""Environments on the system's Python, and what pip may say."""

import json
import re
import subprocess
import sys

import pytest

from harness_adapters.errors import HarnessError
from harness_adapters.harness import python_packages
from harness_adapters.harness.hermes import MOUNT, VERSION
from harness_adapters.harness.install import install
from harness_adapters.harness.packages import lock_file
from harness_adapters.harness.python_packages import (
    environment_python,
    make_environment,
    programs,
    site_packages,
    system_python,
)

VERSIONS = ((3, 13), (3, 12), (3, 11))


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def program(path, script):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def pythons(tmp_path, monkeypatch):
    """A directory for interpreters, instead of the system's; they say what they are told to."""
    directory = tmp_path / "pythons"
    monkeypatch.setattr(python_packages, "SYSTEM_DIRECTORIES", (directory,))

    def add(name, says):
        return program(directory / name, f"[ \"$2\" = -c ] && echo '{json.dumps(says)}'")

    return add


def test_the_lock_file_holds_hashes_and_no_registry():
    text = lock_file("hermes", "requirements.txt").decode()
    assert "://" not in text
    blocks = re.split(r"\n(?=\S)", text.strip())
    assert len(blocks) > 50
    for block in blocks:
        head, *hashes = block.split(" \\\n")
        assert re.match(r"[a-z0-9-]+==[^ ;]+( ; .+)?$", head)
        assert hashes, head
        assert all(re.fullmatch(r" +--hash=sha256:[0-9a-f]{64}", line) for line in hashes)
    assert text.count(f"\nhermes-agent=={VERSION} ") == 1


def test_the_first_usable_interpreter_of_the_system_is_taken(pythons):
    usr = ["/usr/bin/env", "/usr"]
    wanted = pythons("python3.11", [3, 11, *usr])
    pythons("python3.13", [3, 13, "/root/.pyenv/bin/python3.13", "/root/.pyenv"])
    pythons("python3.12", [3, 11, *usr])
    found = system_python("hermes", VERSIONS)
    assert (found.path, found.version, found.name) == (wanted, (3, 11), "python3.11")


def test_without_an_interpreter_one_line_says_what_to_do(home, pythons):
    pythons("python3.11", ["no", "tuple"])
    wanted = r"^hermes needs a Python of the system \(3\.11, 3\.12, 3\.13\) .*apt install python3"
    with pytest.raises(HarnessError, match=wanted) as raised:
        install("hermes")
    assert "\n" not in str(raised.value)
    assert list((home / "harnesses").iterdir()) == []


def test_an_environment_can_be_moved_and_has_nothing_of_the_systems(tmp_path):
    python = system_python("hermes", VERSIONS)
    make_environment(tmp_path / "a", python)
    (site_packages(tmp_path / "a", python) / "inside.py").write_text("")
    (tmp_path / "a").rename(tmp_path / "b")
    code = "import sys, inside; print(sys.prefix, *sys.path, inside.__file__, sep='\\n')"
    command = [environment_python(tmp_path / "b"), "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    prefix, *paths, inside = done.stdout.splitlines()
    assert prefix == str(tmp_path / "b")
    assert inside == str(site_packages(tmp_path / "b", python) / "inside.py")
    assert not any("dist-packages" in path for path in paths)


def test_an_install_names_no_path_of_its_own_and_is_compiled(hermes):
    root = hermes.installed()
    assert sorted(path.name for path in (root / "bin").iterdir()) == ["python3"]
    assert sorted(path.name for path in programs(root).iterdir()) == ["rg"]
    compiled = 0
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes()
            for place in (f"/.hermes-{VERSION}-", str(root)):
                assert place.encode() not in text, path
            if path.suffix == ".pyc":
                compiled += f"{MOUNT}/lib/".encode() in text
                assert text[4] == 0b01, "its source is never looked at"
    sources = len(list(root.rglob("site-packages/**/*.py")))
    assert compiled > 0.95 * sources > 1000


def fake_pip(tmp_path, monkeypatch, script):
    """This program's own interpreter with a pip that does `script`."""
    monkeypatch.setattr(sys, "executable", str(program(tmp_path / "bin" / "python", script)))


VERSION_WORKS = 'case "$*" in *--version*) exit 0;; esac\n'


def test_pips_first_error_is_told_and_nothing_stays(home, tmp_path, monkeypatch):
    script = (
        "echo 'WARNING: Retrying' >&2; echo 'ERROR: No such version' >&2\n"
        "echo 'ERROR: No matching distribution' >&2; exit 1"
    )
    fake_pip(tmp_path, monkeypatch, VERSION_WORKS + script)
    with pytest.raises(HarnessError, match=r"^pip could not install hermes: No such version$"):
        install("hermes")
    assert list((home / "harnesses").iterdir()) == []


def test_a_pip_that_installs_nothing_is_found_out(home, tmp_path, monkeypatch):
    fake_pip(tmp_path, monkeypatch, VERSION_WORKS)
    with pytest.raises(
        HarnessError, match=r"hermes --version failed instead of 0\.19\.0: .*hermes"
    ):
        install("hermes")
    assert list((home / "harnesses").iterdir()) == []


def test_without_pip_one_line_says_what_to_do(home, tmp_path, monkeypatch, pythons):
    pythons("python3.12", [3, 12, "/usr/bin/env", "/usr"])
    fake_pip(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(HarnessError, match=r"^pip 22\.3 or newer is needed .* -m ensurepip"):
        install("hermes")
    assert list((home / "harnesses").iterdir()) == []
