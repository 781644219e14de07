"""Every format is recognised by its content, counted, and read into the normal form."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from harness_adapters.synthesis.traces.reading import FileReport, count_file, read_file
from harness_adapters.synthesis.traces.session import Session, Speaker, ToolKind

from . import samples

SAMPLES = {make.__name__: make() for make in samples.ALL}


def write(tmp_path: Path, text: str, name: str = "log") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def sessions(path: Path) -> list[Session]:
    report = FileReport(str(path))
    found = list(read_file(path, report))
    assert report.error is None
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_counts(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    report = count_file(write(tmp_path, sample.text))
    assert report.error is None
    assert report.format == sample.format
    assert dataclasses.astuple(report.counts) == (*sample.counts, 0)


@pytest.mark.parametrize("name", SAMPLES)
def test_reading_counts_what_counting_counts(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, SAMPLES[name].text)
    report = FileReport(str(path))
    found = list(read_file(path, report))
    counted = count_file(path)
    assert (report.counts, report.notes) == (counted.counts, counted.notes)
    calls = [call for session in found for call in session.calls()]
    results = [call.result for call in calls if call.result]
    results += [orphan for session in found for orphan in session.orphans]
    assert len(found) == counted.counts.sessions
    assert sum(len(session.turns) for session in found) == counted.counts.turns
    assert len(calls) == counted.counts.tool_calls
    assert len(results) == counted.counts.results
    assert (
        sum(result.exit_code is not None for result in results) == counted.counts.exit_codes_known
    )
    assert sum(call.kind is ToolKind.EDIT for call in calls) == counted.counts.edits


@pytest.mark.parametrize("name", [n for n in SAMPLES if n not in ("atif", "swe_agent", "chat")])
def test_the_story(name: str, tmp_path: Path) -> None:
    """The request of a person, a test that failed first; the last words where there are any."""
    [session] = sessions(write(tmp_path, SAMPLES[name].text))
    requests = [said.text for _, said in session.requests()]
    assert requests == [requests[0]]
    assert requests[0].startswith("Make ")
    tests = [call for call in session.calls() if call.command == samples.TEST]
    assert [call.kind for call in tests] == [ToolKind.SHELL] * 2
    assert tests[0].exit_code == 1
    assert tests[1].exit_code == (None if name == "nemo_gym" else 0)
    assert all(call.result is not None for call in session.calls())
    if name not in ("mini_v1", "mini_v2"):
        assert session.turns[-1].text == "Done."


@pytest.mark.parametrize("name", ["claude_code", "opencode", "openhands_v1"])
def test_whole_files_before_an_edit(name: str, tmp_path: Path) -> None:
    [session] = sessions(write(tmp_path, SAMPLES[name].text))
    [edit] = [call for call in session.calls() if call.kind is ToolKind.EDIT]
    assert [(state.path, state.text) for state in edit.before] == [
        ("/repo/sums.py", samples.BEFORE)
    ]


def test_codex_diffs_and_facts(tmp_path: Path) -> None:
    [session] = sessions(write(tmp_path, SAMPLES["codex"].text))
    [edit] = [call for call in session.calls() if call.kind is ToolKind.EDIT]
    assert list(edit.diffs) == ["/repo/sums.py"]
    assert (session.cwd, session.git_commit, session.agent_version) == (
        "/repo",
        "c0ffee",
        "0.140.0",
    )
    spoken = [said.speaker for turn in session.turns for said in turn.before]
    assert spoken == [Speaker.HARNESS, Speaker.USER]


def test_formats_are_told_apart_by_content_not_by_name(tmp_path: Path) -> None:
    for name, sample in SAMPLES.items():
        path = write(tmp_path, sample.text, "claude-codex-pi.traj.json.db")
        assert count_file(path).format == sample.format, name


def test_claude_code_subagents_branches_duplicates_compaction(tmp_path: Path) -> None:
    records = samples.claude_code().records
    side = json.loads(json.dumps(records[-1]))
    side |= {"uuid": "side", "isSidechain": True, "agentId": "a1", "parentUuid": None}
    side["message"]["id"] = "m-side"
    boundary = {**records[0], "type": "system", "subtype": "compact_boundary", "uuid": "c"}
    boundary |= {"parentUuid": None, "logicalParentUuid": "u12"}
    summary = {**records[0], "uuid": "sum", "parentUuid": "c", "isCompactSummary": True}
    other = json.loads(json.dumps(records[-1]))
    other |= {"uuid": "other", "parentUuid": "sum"}
    other["message"]["id"] = "m-other"
    text = "".join(json.dumps(r) + "\n" for r in [*records, records[3], side, boundary, summary])
    edited = {**records[0], "uuid": "again", "parentUuid": "u5"}
    answer = json.loads(json.dumps(other)) | {"uuid": "final", "parentUuid": "again"}
    text += json.dumps(edited) + "\n" + json.dumps(answer) + "\n"
    path = write(tmp_path, text)
    report = count_file(path)
    assert report.notes["duplicates"] == 1
    assert report.notes["compactions"] == 1
    assert report.notes["subagent_records"] == 1
    [session] = sessions(path)
    assert [turn.agent for turn in session.turns if turn.agent] == ["a1"]
    # The person went back to the first answer and asked anew: what came between is abandoned.
    assert [turn.branch for turn in session.turns if not turn.agent] == [False, *[True] * 4, False]
    assert [said.speaker for said in session.turns[-1].before] == [Speaker.SUMMARY, Speaker.USER]


def test_ids_used_twice_are_paired_in_order(tmp_path: Path) -> None:
    def run(command: str, output: str) -> list[dict[str, object]]:
        function = {"name": "bash", "arguments": json.dumps({"command": command})}
        return [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "0", "function": function}]},
            {"role": "tool", "tool_call_id": "0", "content": output},
        ]

    messages = [{"role": "user", "content": "go"}, *run("a", "1"), *run("b", "2"), *run("b", "3")]
    [session] = sessions(write(tmp_path, json.dumps({"messages": messages})))
    assert [(c.command, c.result and c.result.text) for c in session.calls()] == [
        ("a", "1"),
        ("b", "2"),
        ("b", "3"),
    ]


def test_commands_of_people_are_no_tool_calls(tmp_path: Path) -> None:
    records = samples.pi().records
    bash = {"role": "bashExecution", "command": "ls", "output": "sums.py", "exitCode": 0}
    text = "".join(json.dumps(r) + "\n" for r in [*records, {"type": "message", "message": bash}])
    path = write(tmp_path, text)
    assert dataclasses.astuple(count_file(path).counts)[:6] == samples.pi().counts
    [session] = sessions(path)
    assert [call.command for call in session.calls() if call.by_user] == ["ls"]
