import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.verify import verify_log
from harness_adapters.records import Decision, Verdict

ALLOWED = Verdict(Decision.ALLOW, "rule", "because")

WRITER = (
    "import sys; from pathlib import Path\n"
    "from harness_adapters.guard import ProposedCall\n"
    "from harness_adapters.guard.audit import AuditLog\n"
    "from harness_adapters.records import Decision, Verdict\n"
    "log = AuditLog(Path(sys.argv[1])); n = 0\n"
    "while True:\n"
    "    call = ProposedCall('s', 't', 'pi', n, 'bash', '{}', '/app')\n"
    "    log.append(call, f'call_{n}', Verdict(Decision.ALLOW, 'r'))\n"
    "    n += 1; print(n, flush=True)\n"
)


def proposed(arguments='{"command": "ls"}', turn=0):
    return ProposedCall("s1", "t1", "pi", turn, "bash", arguments, "/app")


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_who_what_and_how_it_was_judged(tmp_path):
    log = AuditLog(tmp_path / "deep" / "audit.jsonl")
    log.append(proposed("x" * 500), "call_0_0", ALLOWED)
    (line,) = lines(log.path)
    assert abs(line.pop("time") - time.time()) < 10
    assert re.fullmatch("[0-9a-f]{64}", line.pop("mac"))
    assert line == {
        "session": "s1",
        "task": "t1",
        "harness": "pi",
        "turn": 0,
        "call": "call_0_0",
        "name": "bash",
        "arguments_sha256": hashlib.sha256(b"x" * 500).hexdigest(),
        "arguments": "x" * 200,
        "decision": "allow",
        "rule": "rule",
        "reason": "because",
        "seq": 0,
        "prev": "0" * 64,
    }


def test_any_text_makes_one_line(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    log.append(proposed('a\nb\u2028c\ud800"'), "call", ALLOWED)
    assert (tmp_path / "audit.jsonl").read_bytes().count(b"\n") == 1
    assert lines(log.path)[0]["arguments"] == 'a\nb\u2028c\ud800"'


def test_threads_and_a_second_writer_keep_lines_whole(tmp_path):
    path = tmp_path / "audit.jsonl"
    logs = [AuditLog(path), AuditLog(path)]

    def write(k):
        for turn in range(100):
            logs[k % 2].append(proposed("y" * 3000, turn), f"call_{k}", ALLOWED)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {(line["call"], line["turn"]) for line in lines(path)}
    assert len(found) == len(lines(path)) == 600
    assert verify_log(path).ok
    assert verify_log(path).entries == 600


def test_processes_that_append_at_once_make_one_chain(tmp_path):
    path = tmp_path / "audit.jsonl"
    program = WRITER.replace("while True", "while n < 60")
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.DEVNULL)
        for _ in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    report = verify_log(path)
    assert (report.ok, report.entries, report.notes) == (True, 180, [])


def test_no_line_that_was_written_is_lost_by_a_kill(tmp_path):
    path = tmp_path / "audit.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    said = [int(process.stdout.readline()) for _ in range(50)]
    os.kill(process.pid, signal.SIGKILL)
    rest = process.stdout.read().split()
    process.wait()
    last = int(rest[-1]) if rest else said[-1]
    assert len(lines(path)) in (last, last + 1)
    assert verify_log(path).ok
    AuditLog(path).append(proposed(), "after", ALLOWED)
    report = verify_log(path)
    assert (report.ok, report.entries) == (True, len(lines(path)))


def test_a_cut_line_is_not_glued_to_the_next(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"session": "cut')
    AuditLog(path).append(proposed(), "call", ALLOWED)
    cut, whole = path.read_text().splitlines()
    assert cut == '{"session": "cut'
    assert json.loads(whole)["session"] == "s1"
    assert verify_log(path).ok


def test_a_place_that_cant_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"audit log .*Not a directory|audit log .*exists"):
        AuditLog(tmp_path / "file" / "audit.jsonl")
    with pytest.raises(StoreError, match="No space left"):
        full = AuditLog(tmp_path / "audit.jsonl")
        os.dup2(os.open("/dev/full", os.O_WRONLY), full._fd)
        full.append(proposed(), "call", ALLOWED)
