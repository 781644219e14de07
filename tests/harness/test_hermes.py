import json
import sys

import pytest

from harness_adapters.errors import HarnessError
from harness_adapters.harness import HOME, Profile
from harness_adapters.harness.hermes import MAX_PROMPT_BYTES, MOUNT, VERSION, Hermes, arguments
from harness_adapters.harness.python_packages import SystemPython, make_environment
from harness_adapters.paths import harness_dir
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import ExecResult
from harness_adapters.tasks import Edit, Shell, WriteFile

CLOSED = b"\nsession_id: 20261130_154845_5b7b50\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def result(stdout=b"Done.\n", stderr=CLOSED, *, returncode=0, timed_out=False, truncated=False):
    return ExecResult(returncode, stdout, stderr, timed_out, truncated, 2.0)


@pytest.mark.parametrize(
    ("left", "calls", "end", "why"),
    [
        (result(), 1, "finished", ""),
        (result(b"session_id: x\n", b"session_id: x\n"), 1, "finished", ""),
        (result(b"Response truncated due to output length limit\n"), 5, "finished", ""),
        (result(stderr=b"", truncated=True), 1, "finished", ""),
        (result(b"HTTP 400: refused\n", returncode=1), 0, "no_call", "HTTP 400: refused"),
        (result(b""), 0, "no_call", "without calling"),
        (result(b"", b"Traceback\nOSError: no\n", returncode=1), 0, "init_failure", "OSError: no"),
        (result(b"Run hermes setup\n", b"", returncode=1), 0, "init_failure", "hermes setup"),
        (result(b"", b"", returncode=127), 0, "init_failure", "code 127"),
        (result(b"I apologize\n", returncode=1), 3, "killed", "error: I apologize"),
        (result(b"", b"", returncode=137), 3, "killed", "code 137"),
        (result(b"", b"x session_id: 1\n", returncode=137), 3, "killed", "code 137"),
        (result(b"", b"", returncode=137, timed_out=True), 3, "killed", "2 s"),
    ],
)
def test_the_end_is_read_from_the_output(left, calls, end, why):
    kind, reason = Hermes().end(left, model_calls=calls)
    assert kind == SessionEnd(end)
    assert why in reason
    assert "\n" not in reason


def test_native_calls_follow_hermess_schemas():
    hermes = Hermes()
    assert hermes.native_call(Shell("ls")) == ("terminal", {"command": "ls"})
    name, values = hermes.native_call(WriteFile("a", "x"))
    assert (name, values) == ("write_file", {"path": "a", "content": "x"})
    name, values = hermes.native_call(Edit("a", "x", "y"))
    wanted = {"mode": "replace", "path": "a", "old_string": "x", "new_string": "y"}
    assert (name, values) == ("patch", wanted)


def launched(hermes, profile, max_context=4096):
    return hermes.launch("p", base_url="http://x/v1", profile=profile, max_context=max_context)


def config(launch):
    return json.loads(launch.home_files[".hermes/config.yaml"])


def test_a_launch_is_configuration_only(hermes):
    lean, stock = (launched(hermes, profile) for profile in (Profile.LEAN, Profile.STOCK))
    assert stock.stdin == b""
    assert stock.env["HOME"] == HOME
    assert [(bind.target, bind.writable) for bind in stock.binds] == [(MOUNT, False)]
    assert set(stock.home_files) == {".hermes/config.yaml", ".hermes/.update_check"}
    assert set(stock.argv) < set(lean.argv)
    assert config(stock)["providers"]["local"]["base_url"] == "http://x/v1"
    for section, values in config(stock).items():
        assert values.items() <= config(lean)[section].items(), "lean only adds"


@pytest.mark.parametrize(("real", "declared"), [(4096, 65_536), (200_000, 200_000)])
def test_the_declared_context_is_one_that_hermes_takes(hermes, real, declared):
    model = config(launched(hermes, Profile.STOCK, real))["model"]
    assert model["context_length"] == declared


def test_a_prompt_is_one_argument():
    assert "--query=-x 'y'\n@z" in arguments("-x 'y'\n@z", lean=True)
    assert arguments("ä" * (MAX_PROMPT_BYTES // 2), lean=True)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [(" \n", "empty"), ("a\0b", "NUL"), ("ä" * (MAX_PROMPT_BYTES // 2 + 1), "131064 bytes")],
)
def test_prompts_that_hermes_cant_be_given_are_refused(prompt, reason):
    with pytest.raises(HarnessError, match=reason):
        arguments(prompt, lean=True)


def test_a_missing_install_says_what_to_do(home):
    with pytest.raises(HarnessError, match="harness install hermes"):
        launched(Hermes(), Profile.LEAN)


def test_an_install_that_lost_its_python_says_what_to_do(home, tmp_path):
    python = tmp_path / "python3.11"
    python.symlink_to(sys.executable)
    root = harness_dir("hermes", VERSION)
    make_environment(root, SystemPython(python, (3, 11)))
    python.unlink()
    with pytest.raises(HarnessError, match=rf"installed for {python}, which is gone; remove"):
        Hermes().installed()
