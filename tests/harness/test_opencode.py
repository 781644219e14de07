import json

import pytest

from harness_adapters.errors import HarnessError
from harness_adapters.harness import HOME, Profile
from harness_adapters.harness.install import install
from harness_adapters.harness.opencode import MOUNT, OpenCode
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import ExecResult
from harness_adapters.tasks import Edit, Shell, WriteFile

CONFIG = ".config/opencode"
STEP = {"type": "step_start", "part": {"type": "step-start"}}
TOOL = {"type": "tool_use", "part": {"type": "tool", "tool": "bash"}}


@pytest.fixture(scope="module")
def opencode() -> OpenCode:
    install("opencode")
    return OpenCode()


def finish(reason):
    return {"type": "step_finish", "part": {"type": "step-finish", "reason": reason}}


def error(message):
    return {"type": "error", "error": {"name": "APIError", "data": {"message": message}}}


def result(*events, returncode=0, stderr=b"", timed_out=False, truncated=False, junk=b""):
    stdout = junk + b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return ExecResult(returncode, stdout, stderr, timed_out, truncated, 2.0)


@pytest.mark.parametrize(
    ("left", "calls", "end", "why"),
    [
        (result(STEP, finish("stop")), 1, "finished", ""),
        (result(STEP, finish("stop"), returncode=1), 1, "finished", ""),
        (result(STEP, finish("length"), junk=b"[\n{x\nBun v1\n"), 1, "finished", ""),
        (result(error("once"), STEP, finish("stop"), returncode=1), 2, "finished", ""),
        (result(STEP, TOOL, truncated=True), 1, "finished", ""),
        (result(STEP, TOOL, finish("tool-calls")), 1, "killed", "ended early with code 0"),
        (result(STEP, TOOL, returncode=137), 3, "killed", "code 137"),
        (result(STEP, timed_out=True, returncode=137), 3, "killed", "2 s"),
        (result(STEP, finish("tool-calls"), error("a\nb")), 3, "killed", "an error: a b"),
        (result(STEP, {"type": "error", "error": None}), 3, "killed", "unknown"),
        (result(error("refused"), returncode=1), 0, "no_call", "refused"),
        (result(STEP), 0, "no_call", "without calling"),
        (result(returncode=1, stderr=b"trace\nno such model\n"), 0, "init_failure", "no such"),
        (result(returncode=127), 0, "init_failure", "code 127"),
    ],
)
def test_the_end_is_read_from_events(left, calls, end, why):
    kind, reason = OpenCode().end(left, model_calls=calls)
    assert kind == SessionEnd(end)
    assert why in reason
    assert "\n" not in reason


@pytest.mark.parametrize("forged", [error("void"), {"type": "error"}, {"type": "session"}])
def test_no_event_takes_a_session_that_called_the_model_out_of_the_statistics(forged):
    assert OpenCode().end(result(STEP, forged, returncode=137), model_calls=1)[0].scorable


def test_native_calls_follow_opencodes_schemas():
    assert OpenCode().native_call(Shell("ls")) == ("bash", {"command": "ls"})
    written = OpenCode().native_call(WriteFile("a", "x"))
    assert written == ("write", {"content": "x", "filePath": "a"})
    edited = OpenCode().native_call(Edit("a", "x", "y"))
    assert edited == ("edit", {"filePath": "a", "oldString": "x", "newString": "y"})


def test_a_launch_is_configuration_only(opencode):
    lean, stock = (
        opencode.launch("p", base_url="http://x/v1", profile=profile, max_context=4096)
        for profile in (Profile.LEAN, Profile.STOCK)
    )
    assert stock.stdin == b"p"
    assert stock.env == lean.env and stock.argv == lean.argv
    assert stock.env["HOME"] == HOME
    assert [(bind.target, bind.writable) for bind in stock.binds] == [(MOUNT, False)]
    assert stock.argv[0].startswith(f"{MOUNT}/")
    settings = {
        profile: json.loads(launch.home_files[f"{CONFIG}/opencode.json"])
        for profile, launch in ((Profile.LEAN, lean), (Profile.STOCK, stock))
    }
    for profile in Profile:
        provider = settings[profile]["provider"]["local"]
        assert provider["options"]["baseURL"] == "http://x/v1"
    # A later rule wins over an earlier one.
    assert next(iter(settings[Profile.LEAN]["permission"])) == "*"
    assert "permission" not in settings[Profile.STOCK]
    assert "build" not in settings[Profile.STOCK]["agent"]


def test_nothing_is_left_for_opencode_to_install(opencode):
    """Its own check: node_modules is there, and the lock file names what package.json wants."""
    launch = opencode.launch("p", base_url="http://x/v1", profile=Profile.LEAN, max_context=4096)
    files = {name.removeprefix(f"{CONFIG}/"): text for name, text in launch.home_files.items()}
    wanted = json.loads(files["package.json"])["dependencies"]
    locked = json.loads(files["package-lock.json"])["packages"][""]["dependencies"]
    assert wanted == locked and set(wanted) == {"@opencode-ai/plugin"}
    assert any(name.startswith("node_modules/") for name in files)


def test_a_missing_install_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match="harness install opencode"):
        OpenCode().launch("p", base_url="http://x/v1", profile=Profile.LEAN, max_context=4096)
