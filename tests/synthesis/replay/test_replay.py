"""Sessions replayed over a virtual file system."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.errors import TraceError
from harness_adapters.synthesis.replay import Certainty, Content, Replay
from harness_adapters.synthesis.replay.fidelity import Fidelity, against_git
from harness_adapters.synthesis.replay.reads import shown_by
from harness_adapters.synthesis.traces.calls import make_call
from harness_adapters.synthesis.traces.reading import read_file
from harness_adapters.synthesis.traces.session import Result, Session, ToolCall, Turn
from synthesis.traces import samples

BEFORE, AFTER = samples.BEFORE, samples.AFTER


def call(name: str, answer: str = "", code: int | None = None, **given: Any) -> ToolCall:
    made = make_call("1", name, given)
    result = Result(answer, exit_code=code, failed=code not in (None, 0))
    return ToolCall(made.id, name, made.kind, given, result, command=made.command)


def replay(*calls: ToolCall, cwd: str = "/repo") -> Replay:
    turns = tuple(Turn(i, (), "", "", (each,)) for i, each in enumerate(calls))
    return Replay(Session("s", "test", "log", turns, cwd=cwd))


def texts(files: dict[str, Content]) -> dict[str, tuple[str | None, str]]:
    return {path: (each.text, each.certainty.value) for path, each in files.items()}


@pytest.mark.parametrize("name", ["claude_code", "pi", "opencode", "hermes", "openhands_v1"])
def test_the_story_in_every_agents_words(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(getattr(samples, name)().text)
    [session] = read_file(path)
    found = Replay(session)
    place = "/sums.py" if name == "hermes" else "/repo/sums.py"
    fixed = next(i for i, each in enumerate(found.calls) if each.kind == "edit")
    assert found.at(fixed)[place].text == BEFORE
    assert found.at(len(found.calls))[place].text == AFTER
    assert found.changed(fixed, fixed) == {place}
    assert found.operations == {"applied": 1} or name == "openhands_v1"


def test_codex_patches_a_file_that_it_showed() -> None:
    patch = "*** Begin Patch\n*** Update File: sums.py\n@@\n-    return a - b\n"
    patch += "+    return a + b\n*** End Patch"
    header = "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"
    found = replay(
        call("exec_command", header + BEFORE, 0, cmd="cat sums.py"),
        call("apply_patch", "Success", 0, input=patch),
        call("apply_patch", "Success", 0, input=patch.replace("sums", "other")),
    )
    assert texts(found.at(3)) == {
        "/repo/sums.py": (AFTER, "exact"),
        "/repo/other.py": (None, "partial"),
    }
    assert found.operations == {"applied": 1, "lost": 1}


def test_a_file_seen_late_was_there_from_the_start() -> None:
    found = replay(
        call("bash", "ok", 0, command="ls"),
        call("read", BEFORE, path="sums.py"),
        call("edit", "ok", path="sums.py", old_string="-", new_string="+"),
    )
    assert found.at(0)["/repo/sums.py"].text == BEFORE
    assert found.at(2)["/repo/sums.py"].text == BEFORE
    assert found.at(3)["/repo/sums.py"].text == AFTER


def glimpse(text: str = BEFORE) -> ToolCall:
    first = text.split("\n")[0]
    return call("read", f"     1\t{first}\n", path="sums.py", offset=1, limit=1)


def test_a_file_seen_in_part_and_later_whole_was_there_from_the_start() -> None:
    whole = call("read", BEFORE, path="sums.py")
    assert replay(glimpse(), glimpse(), whole).at(0)["/repo/sums.py"].text == BEFORE
    other = replay(glimpse("something = else"), whole)
    assert (other.at(0)["/repo/sums.py"].text, other.at(2)["/repo/sums.py"].text) == (None, BEFORE)
    pulled = replay(glimpse(), call("bash", "", 0, command="git pull"), whole)
    assert pulled.at(1)["/repo/sums.py"].text is None
    edit = call("edit", "ok", path="sums.py", old_string="-", new_string="+")
    edited = replay(glimpse(), edit, call("read", AFTER, path="sums.py"))
    assert edited.at(1)["/repo/sums.py"].text is None


def test_a_written_file_was_not_there_before() -> None:
    made = call("write", "File created successfully", path="new.py", content="x = 1\n")
    found = replay(made, call("bash", "", 0, command="rm new.py"))
    assert found.at(0) == {}
    assert texts(found.at(1)) == {"/repo/new.py": ("x = 1\n", "exact")}
    assert found.at(2) == {}


def test_failed_and_running_calls_change_nothing() -> None:
    found = replay(
        call("read", BEFORE, path="sums.py"),
        call("edit", "not found", 1, path="sums.py", old_string="-", new_string="+"),
        ToolCall("1", "write", make_call("1", "write", {}).kind, {"path": "a", "content": "b"}),
    )
    assert texts(found.at(3)) == {"/repo/sums.py": (BEFORE, "exact")}


@pytest.mark.parametrize(
    ("command", "code", "expected"),
    [
        ("cat > sums.py <<'EOF'\nx = 1\nEOF", 0, ("x = 1\n", "exact")),
        ("cd /repo && echo hello > sums.py", 0, ("hello\n", "exact")),
        ("echo hello >> sums.py", 0, (BEFORE + "hello\n", "exact")),
        ("cat > sums.py <<EOF\n$HOME\nEOF", 0, (None, "partial")),
        ("false && echo hello > sums.py", 1, (None, "partial")),
        ("if true; then echo hello > sums.py; fi", 0, (None, "partial")),
        ("python3 -m pytest -q", 1, (BEFORE, "exact")),
        ("grep -n return sums.py | head", 0, (BEFORE, "exact")),
        ("git status && git diff", 0, (BEFORE, "exact")),
        ("./generate.sh", 0, (BEFORE, "inferred")),
        ("ruff format .", 0, (BEFORE, "inferred")),
        ("git checkout -- sums.py", 0, (None, "partial")),
        ("git stash", 0, (None, "partial")),
        ("rm -rf /repo", 0, None),
        ("cp sums.py copy.py", 0, (BEFORE, "exact")),
    ],
)
def test_commands(command: str, code: int, expected: tuple[str | None, str] | None) -> None:
    found = replay(call("read", BEFORE, path="sums.py"), call("bash", "", code, command=command))
    files = found.at(2)
    if expected is None:
        assert not files.get("/repo/sums.py", Content(None)).known
    else:
        assert texts(files)["/repo/sums.py"] == expected
    if command.startswith("cp"):
        assert files["/repo/copy.py"].text == BEFORE


def test_what_the_log_shows_later_is_compared_with_what_was_replayed() -> None:
    found = replay(
        call("read", BEFORE, path="sums.py"),
        call("edit", "ok", path="sums.py", old_string="-", new_string="+"),
        call("read", AFTER, path="sums.py"),
        call("bash", "", 0, command="./generate.sh"),
        call("read", "other\n", path="sums.py"),
    )
    assert found.fidelity.files == {Certainty.EXACT: 1, Certainty.INFERRED: 1}
    assert found.fidelity.equal == {Certainty.EXACT: 1, Certainty.INFERRED: 0}
    assert found.fidelity.wrong == ["/repo/sums.py"]
    assert found.at(5)["/repo/sums.py"] == Content("other\n")


@pytest.mark.parametrize(
    ("answer", "arguments", "text", "lines"),
    [
        (BEFORE, {}, BEFORE, {}),
        ("     1\tx = 1\n     2\ty = 2", {}, "x = 1\ny = 2\n", {}),
        ("1|x = 1\n2|", {}, "x = 1\n", {}),
        ("     7→x = 1\n     8→y = 2", {"offset": 7}, None, {7: "x = 1", 8: "y = 2"}),
        (
            "<path>/a</path>\n<content>\n1: x = 1\n\n(End of file - total 1 lines)\n</content>",
            {},
            "x = 1\n",
            {},
        ),
        ("x\n\n[Showing lines 1-1 of 9. Use offset=2 to continue]", {}, None, None),
        (json.dumps({"content": "1|x\n2|", "total_lines": 1, "truncated": False}), {}, "x\n", {}),
        (json.dumps({"content": "1|x", "total_lines": 9, "truncated": True}), {}, None, {1: "x"}),
    ],
)
def test_reads(
    answer: str, arguments: dict[str, Any], text: str | None, lines: dict[int, str] | None
) -> None:
    shown = shown_by(call("read", answer, path="a", **arguments))
    if lines is None:
        assert shown is None
    else:
        assert shown is not None
        assert (shown.text, shown.lines) == (text, lines)


def test_windows_paths_are_kept_apart() -> None:
    found = replay(
        call("write", "created", path=r"C:\work\a.py", content="x\n"),
        call("edit", "ok", path=r"C:\work\a.py", old_string="x", new_string="y"),
        cwd=r"C:\work",
    )
    assert texts(found.at(2)) == {"C:/work/a.py": ("y\n", "exact")}
    assert found.relative("C:/work/a.py") == "a.py"


def test_against_a_git_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        named = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        subprocess.run(["git", "-C", str(tmp_path), *named, *arguments], check=True)

    git("init", "-q")
    (tmp_path / "sums.py").write_text(AFTER)
    (tmp_path / "other.py").write_text("x = 1\ny = 2\n")
    git("add", ".")
    git("commit", "-qm", "all")
    files = {
        "sums.py": Content(AFTER),
        "other.py": Content("x = 1\ny = 3\n", Certainty.INFERRED),
        "part.py": Content(None, Certainty.PARTIAL),
        "gone.py": Content("z\n"),
    }
    found = against_git(files, tmp_path, "HEAD")
    assert found.equal == {Certainty.EXACT: 1, Certainty.INFERRED: 0}
    assert found.bytes == {Certainty.EXACT: len(AFTER), Certainty.INFERRED: 12}
    assert found.right == {Certainty.EXACT: len(AFTER), Certainty.INFERRED: 6}
    both = Fidelity()
    both.merge(found)
    assert both.share() == (len(AFTER) + 6) / (len(AFTER) + 12)
    with pytest.raises(TraceError, match="check path and commit"):
        against_git(files, tmp_path, "nothing")
