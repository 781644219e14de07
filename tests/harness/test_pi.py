import json

import pytest

from harness_adapters.errors import HarnessError
from harness_adapters.harness import HOME, Profile
from harness_adapters.harness.pi import MOUNT, Pi
from harness_adapters.harness.registry import get_harness, known_harnesses
from harness_adapters.records import SessionEnd
from harness_adapters.sandbox import ExecResult
from harness_adapters.tasks import Edit, Shell, WriteFile

STARTED = [{"type": "session"}, {"type": "agent_start"}]
SETTLED = [{"type": "agent_end"}, {"type": "agent_settled", "aborted": False}]


def said(**message):
    return [{"type": "message_end", "message": {"role": "assistant"} | message}]


def result(*events, returncode=0, stderr=b"", timed_out=False, truncated=False, junk=b""):
    stdout = junk + b"".join(json.dumps(event).encode() + b"\n" for event in events)
    return ExecResult(returncode, stdout, stderr, timed_out, truncated, 2.0)


@pytest.mark.parametrize(
    ("left", "calls", "end", "why"),
    [
        (result(*STARTED, *said(stopReason="stop"), *SETTLED), 1, "finished", ""),
        (result(*STARTED, *said(stopReason="stop"), *SETTLED, junk=b"[\n{x\n"), 1, "finished", ""),
        (result(*STARTED, truncated=True), 1, "finished", ""),
        (result(*STARTED, *SETTLED), 0, "no_call", "without calling"),
        (
            result(*STARTED, *said(stopReason="error", errorMessage="refused"), *SETTLED),
            0,
            "no_call",
            "refused",
        ),
        (result(returncode=1, stderr=b"trace\nno such model\n"), 0, "init_failure", "no such"),
        (result(returncode=127), 0, "init_failure", "code 127"),
        (result(*STARTED, timed_out=True, returncode=137), 3, "killed", "2 s"),
        (result(*STARTED, returncode=137), 3, "killed", "code 137"),
        (result(*STARTED, *said(stopReason="error"), *SETTLED), 3, "killed", "error"),
    ],
)
def test_the_end_is_read_from_events(left, calls, end, why):
    kind, reason = Pi().end(left, model_calls=calls)
    assert kind == SessionEnd(end)
    assert why in reason
    assert "\n" not in reason


def test_native_calls_follow_pis_schemas():
    assert Pi().native_call(Shell("ls")) == ("bash", {"command": "ls"})
    assert Pi().native_call(WriteFile("a", "x")) == ("write", {"path": "a", "content": "x"})
    name, arguments = Pi().native_call(Edit("a", "x", "y"))
    assert name == "edit"
    assert arguments == {"path": "a", "edits": [{"oldText": "x", "newText": "y"}]}


def test_a_launch_is_configuration_only(pi):
    lean = pi.launch("p", base_url="http://x/v1", profile=Profile.LEAN, max_context=4096)
    stock = pi.launch("p", base_url="http://x/v1", profile=Profile.STOCK, max_context=4096)
    assert stock.stdin == b"p"
    assert stock.env["HOME"] == HOME
    assert [(bind.target, bind.writable) for bind in stock.binds] == [(MOUNT, False)]
    assert set(lean.home_files) - set(stock.home_files) == {".pi/agent/SYSTEM.md"}
    assert set(stock.argv) < set(lean.argv)
    models = json.loads(stock.home_files[".pi/agent/models.json"])
    assert models["providers"]["local"]["baseUrl"] == "http://x/v1"


def test_a_missing_install_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_ADAPTERS_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match="harness install pi"):
        Pi().launch("p", base_url="http://x/v1", profile=Profile.LEAN, max_context=4096)


def test_unknown_harnesses_list_the_known():
    assert get_harness("pi").name == "pi"
    with pytest.raises(HarnessError, match=f"'vim'; known: {', '.join(known_harnesses())}"):
        get_harness("vim")
