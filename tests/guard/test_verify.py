"""Tampering with a log: whatever is done to its bytes without the key has to show."""

import json
import os
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_adapters.errors import StoreError
from harness_adapters.guard import ProposedCall, audit
from harness_adapters.guard.audit import AuditLog
from harness_adapters.guard.chain import Position, seal
from harness_adapters.guard.verify import verify_log
from harness_adapters.records import Decision, Verdict

BLOCKED = Verdict(Decision.BLOCK, "no-rm", "deleting is not allowed")


def proposed(turn=0):
    return ProposedCall("s1", "t1", "pi", turn, "bash", '{"command": "ls"}', "/app")


def fill(log, entries=5, first=0):
    for turn in range(first, first + entries):
        log.append(proposed(turn), f"call_{turn}", BLOCKED)


@pytest.fixture
def path(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl")
    fill(log)
    log.close()
    assert verify_log(log.path).ok
    return log.path


def change(path, edit):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(edit(lines)))


def edited(lines):
    lines[2] = lines[2].replace(b'"block"', b'"allow"')
    return lines


def swapped(lines):
    return [lines[0], lines[2], lines[1], *lines[3:]]


def forged(lines):
    entry = json.loads(lines[2]) | {"decision": "allow"}
    at = Position(2, 0, json.loads(lines[1])["mac"])
    del entry["mac"]
    return [*lines[:2], seal(b"another key", entry, at)[0], *lines[3:]]


@pytest.mark.parametrize(
    ("edit", "entries", "problem"),
    [
        (edited, 2, "line 3: changed"),
        (forged, 2, "line 3: changed, or not written with this machine's key"),
        (lambda lines: [*lines[:2], *lines[3:]], 2, "line 3: entry 3 stands where entry 2 belongs"),
        (lambda lines: lines[1:], 0, "line 1: entry 1 stands where entry 0 belongs"),
        (swapped, 1, "line 2: entry 2 stands where entry 1 belongs"),
        (lambda lines: [*lines[:2], lines[1], *lines[2:]], 2, "line 3: entry 1 stands where"),
        (lambda lines: [*lines[:2], b"{}\n", *lines[2:]], 2, "line 3: not a whole entry"),
        (lambda lines: [*lines, b'{"decision": "allow"}\n'], 5, "line 6: not a whole entry"),
        (lambda lines: lines[:-1], 4, "the end is cut: 4 entries are there, the head knows 5"),
        (lambda lines: [*lines[:-1], lines[-1][:50]], 4, "the end is cut"),
        (lambda lines: [], 0, "the end is cut: 0 entries are there, the head knows 5"),
    ],
)
def test_the_first_bad_entry_is_named(path, edit, entries, problem):
    change(path, edit)
    report = verify_log(path)
    assert (report.ok, report.entries) == (False, entries)
    assert problem in report.problem


def test_an_entry_of_another_log_of_this_machine_is_seen(path, tmp_path):
    """Its MAC is good and its number fits; what it follows is another entry."""
    other = AuditLog(tmp_path / "other.jsonl")
    fill(other, 5, first=100)
    taken = other.path.read_bytes().splitlines(keepends=True)[2]
    change(path, lambda lines: [*lines[:2], taken, *lines[3:]])
    assert "line 3" in verify_log(path).problem
    change(path, lambda lines: other.path.read_bytes().splitlines(keepends=True))
    assert "not the one that the head knows" in verify_log(path).problem


def test_a_log_that_is_gone_is_a_cut_log(path):
    path.unlink()
    assert "the head knows 5" in verify_log(path).problem
    with pytest.raises(StoreError, match="No such file"):
        verify_log(path.with_name("never-was"))


# Places are shares of the file: its length differs by some digits from one time to the next.
SHARE = st.floats(0, 1, exclude_max=True)


@given(SHARE, st.integers(1, 255))
@settings(max_examples=150, deadline=None)
def test_no_change_of_a_byte_goes_unseen(tmp_path_factory, share, bits):
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    fill(AuditLog(path), 3)
    whole = path.read_bytes()
    place = int(share * len(whole))
    path.write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])
    assert not verify_log(path).ok


@given(SHARE)
@settings(max_examples=60, deadline=None)
def test_a_log_cut_at_any_byte_verifies_up_to_there_and_takes_no_more(tmp_path_factory, share):
    path = tmp_path_factory.mktemp("log") / "audit.jsonl"
    log = AuditLog(path)
    fill(log, 3)
    whole = path.read_bytes()
    place = int(share * len(whole))
    path.write_bytes(whole[:place])
    report = verify_log(path)
    assert "the end is cut" in report.problem
    assert report.entries == whole[:place].count(b"\n")
    with pytest.raises(StoreError, match="cut from its end"):
        fill(log, 1)


@pytest.mark.parametrize("forgery", ["fewer", "other", "garbage", ""])
def test_a_forged_head_is_seen_and_stops_the_log(path, tmp_path, forgery):
    other = AuditLog(tmp_path / "other.jsonl")
    fill(other, 4)
    log = AuditLog(path)
    head = log.head.read_text()
    change(path, lambda lines: lines[:4])
    log.head.write_text(
        {
            "fewer": head.replace('"entries": 5', '"entries": 4'),
            "other": other.head.read_text(),
            "garbage": "{",
            "": "",
        }[forgery]
    )
    assert "the head is damaged or forged" in verify_log(path).problem
    with pytest.raises(StoreError, match=r"head .* is damaged"):
        fill(log, 1)


def test_a_kill_between_entry_and_head_loses_nothing(path):
    log = AuditLog(path)
    before = log.head.read_bytes()
    fill(log, 1, first=5)
    log.head.write_bytes(before)
    assert (verify_log(path).ok, verify_log(path).entries) == (True, 6)
    fill(log, 1, first=6)
    assert (verify_log(path).ok, verify_log(path).entries) == (True, 7)


def test_what_a_stop_of_the_machine_took_is_told_and_the_log_goes_on(path, monkeypatch):
    """Without power the head may have reached the disk and the last entries not."""
    change(path, lambda lines: [*lines[:3], lines[3][:40]])
    with pytest.raises(StoreError, match="cut from its end"):
        AuditLog(path)
    monkeypatch.setattr(audit, "boot_id", lambda: "another start of the machine")
    AuditLog(path).close()
    fill(AuditLog(path), 2, first=5)
    report = verify_log(path)
    assert (report.ok, report.entries) == (True, 5)
    assert "2 entries were lost when the machine stopped; the log says where" in report.notes
    assert [json.loads(x).get("lost") for x in path.read_text().splitlines()[4:]] == [2, None]


def test_a_cut_line_is_told_and_the_log_goes_on_behind_it(path):
    with path.open("ab") as file:
        file.write(b'{"time": 17')
    report = verify_log(path)
    assert (report.ok, report.entries) == (True, 5)
    assert "the last line is cut: 11 bytes" in report.notes[0]
    fill(AuditLog(path), 2, first=5)
    report = verify_log(path)
    assert (report.ok, report.entries) == (True, 7)
    assert "1 places hold bytes that are no entry" in report.notes[0]
    path.write_bytes(path.read_bytes().replace(b'{"time": 17\n', b'{"time": 18\n'))
    assert "line 6" in verify_log(path).problem


def test_a_log_from_before_there_were_chains_goes_on_and_is_vouched_for(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text('{"session": "old"}\n{"session": "older"}\n')
    assert "not a whole entry" in verify_log(path).problem
    fill(AuditLog(path), 2)
    assert (verify_log(path).ok, verify_log(path).entries) == (True, 2)
    path.write_text(path.read_text().replace("older", "young"))
    assert not verify_log(path).ok


def test_a_moved_log_keeps_its_chain_but_not_its_head(path):
    moved = path.rename(path.with_name("moved.jsonl"))
    assert "no head" in verify_log(moved).problem
    fill(AuditLog(moved), 1, first=5)
    assert (verify_log(moved).ok, verify_log(moved).entries) == (True, 6)


def test_a_log_that_was_removed_starts_again_and_its_old_head_tells(path):
    path.unlink()
    log = AuditLog(path)
    fill(log, 2)
    report = verify_log(path)
    assert report.entries == 2
    assert "an earlier log of 5 entries was here and is gone" in report.problem
    (kept,) = log.head.parent.glob(f"{log.head.stem}.*.replaced")
    assert str(kept) in report.problem
    kept.unlink()
    assert verify_log(path).ok


def test_a_file_that_is_swapped_in_use_takes_no_entry(path):
    log = AuditLog(path)
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").rename(path)
    with pytest.raises(StoreError, match="moved or replaced"):
        fill(log, 1)


def test_key_and_heads_are_for_their_user_alone(tmp_path):
    log = AuditLog(tmp_path / "audit.jsonl", home=tmp_path / "home")
    for made in (tmp_path / "home", tmp_path / "home" / "key", log.head.parent, log.head):
        assert made.stat().st_mode & 0o077 == 0, made
    assert len((tmp_path / "home" / "key").read_bytes()) == 32
    (tmp_path / "home" / "key").write_bytes(os.urandom(32))
    assert not verify_log(log.path, home=tmp_path / "home").ok, "a log under another key"
    (tmp_path / "home" / "key").write_bytes(b"short")
    with pytest.raises(StoreError, match=r"audit key .* 5 bytes"):
        AuditLog(tmp_path / "audit.jsonl", home=tmp_path / "home")
