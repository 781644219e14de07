"""`harness-adapters guard` as its users start it: real processes on loopback."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from harness_adapters.cli.guard import policy_of_options
from harness_adapters.errors import ConfigError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.policies import AllowAll
from harness_adapters.guard.policy import EffectPolicy
from harness_adapters.records import Decision

CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"c": "rm x"}'}}
ANSWER = {
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ]
}


class Model(BaseHTTPRequestHandler):
    """Answers every request with one call."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def model():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture
def environment(tmp_path):
    return {**os.environ, "HARNESS_ADAPTERS_HOME": str(tmp_path / "home")}


def command(*words):
    return [sys.executable, "-c", "from harness_adapters.cli.main import main; main()", *words]


@pytest.fixture
def guard(environment, tmp_path):
    def run(*words):
        return subprocess.run(
            command("guard", *words),
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.fixture
def serving(environment, tmp_path):
    @contextmanager
    def start(*words):
        process = subprocess.Popen(
            command("guard", "serve", *words),
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            yield process, process.stdout.readline().strip(), process.stdout.readline()
        finally:
            process.kill()
            process.wait()

    return start


def ask(address):
    return httpx.post(f"{address}/v1/chat/completions", json={}, timeout=20).json()["choices"][0]


def test_serve_list_stop_and_verify(model, serving, guard, tmp_path):
    log = tmp_path / "mine.jsonl"
    words = ("--upstream", model, "--deny", r"\brm\b", "--name", "one", "--log", str(log))
    with serving(*words, "--harness", "pi") as (process, address, told):
        assert address.startswith("http://127.0.0.1:")
        assert str(log) in told
        choice = ask(address)
        assert (choice["finish_reason"], "tool_calls" in choice["message"]) == ("stop", False)
        assert "bash was blocked and not run" in choice["message"]["content"]
        listed = guard("list").stdout
        for word in ("one", address, model.removesuffix("/v1")):
            assert word in listed
        again = guard("serve", *words)
        assert (again.returncode, "runs already" in again.stderr) == (2, True)
        stopped = guard("stop", "one")
        assert (stopped.returncode, "stopped one" in stopped.stdout) == (0, True)
        assert process.wait(20) == 0
    assert "no proxy runs" in guard("list").stdout
    (entry,) = map(json.loads, log.read_text().splitlines())
    assert (entry["harness"], entry["decision"], entry["rule"]) == ("pi", "block", "deny")
    sound = guard("verify-log", str(log))
    assert (sound.returncode, "1 entries, as they were written" in sound.stdout) == (0, True)
    log.write_text(log.read_text().replace('"block"', '"allow"'))
    bad = guard("verify-log", str(log))
    assert (bad.returncode, "line 1: changed" in bad.stdout) == (1, True)
    log.write_text("")
    cut = guard("verify-log", str(log))
    assert (cut.returncode, "the head knows 1" in cut.stdout) == (1, True)


def test_log_only_and_a_log_of_all_proxies(model, serving, guard, tmp_path):
    with serving("--upstream", model, "--deny", "rm", "--log-only") as (_, address, _):
        assert ask(address)["message"]["tool_calls"] == [CALL]
        assert "log only" in guard("list").stdout
    sound = guard("verify-log", str(tmp_path / "home" / "guard" / "audit.jsonl"))
    assert sound.returncode == 0


def test_a_policy_of_ones_own(model, serving, guard, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from harness_adapters.records import Decision, Verdict\n"
        "class Policy:\n"
        "    def judge(self, call):\n"
        "        return Verdict(Decision.BLOCK, 'mine', f'not in {call.workdir}')\n"
    )
    words = ("--upstream", model, "--policy", "mine:Policy", "--workdir", "/app")
    with serving(*words) as (_, address, _):
        assert "not in /app" in ask(address)["message"]["content"]
    wrong = guard("serve", "--upstream", model, "--policy", "mine:Nothing")
    assert (wrong.returncode, "no attribute 'Nothing'" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_whatever_ends_a_proxy_it_leaves_the_list(model, serving, guard, number):
    with serving("--upstream", model, "--name", "one") as (process, address, _):
        ask(address)
        process.send_signal(number)
        assert process.wait(20) == (-9 if number == signal.SIGKILL else 0)
    assert "no proxy runs" in guard("list").stdout
    gone = guard("stop", "one")
    assert (gone.returncode, "no proxy named 'one'" in gone.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--upstream", "nonsense"), "not an address"),
        (("--upstream", "http://me:secret@host"), "not an address"),
        (("--upstream", "http://127.0.0.1:9", "--host", "203.0.113.1"), "can't listen"),
        (("--upstream", "http://127.0.0.1:9", "--deny", "("), "--deny '('"),
        (("--upstream", "http://127.0.0.1:9", "--name", "../x"), "--name '../x'"),
        (("--upstream", "http://127.0.0.1:9", "--log", "/proc/x/log"), "audit log /proc/x/log"),
        (("--upstream", "http://127.0.0.1:9", "--policy", "x:y", "--deny", "x"), "one of them"),
    ],
)
def test_bad_words_are_one_clear_line(guard, words, told):
    result = guard("serve", *words)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert told in line


def test_a_log_that_isnt_there_is_one_clear_line(guard, tmp_path):
    result = guard("verify-log", str(tmp_path / "none"))
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)


def test_the_policy_that_options_name():
    assert isinstance(policy_of_options(None, []), EffectPolicy)
    assert isinstance(policy_of_options("off", []), AllowAll)
    assert isinstance(policy_of_options("harness_adapters.guard.policies:AllowAll", []), AllowAll)
    denies = policy_of_options(None, [r"\brm\b"])
    call = ProposedCall("s", "t", "pi", 0, "bash", '{"command": "rm x"}', "/app")
    assert denies.judge(call).decision is Decision.BLOCK


@pytest.mark.parametrize(
    ("name", "patterns", "says"),
    [
        ("default", ["x"], "give one of them"),
        (None, ["("], "--deny '\\('"),
        ("no.such.module:Policy", [], "ModuleNotFoundError"),
        ("json:dumps", [], "TypeError"),
        ("none.toml", [], "No such file"),
        ("defualt", [], "No such file"),
    ],
)
def test_a_policy_that_cant_be_had_is_one_line(name, patterns, says):
    with pytest.raises(ConfigError, match=says):
        policy_of_options(name, patterns)
