"""From log files to a dataset: outcomes, resuming, near-duplicates, splits, the page."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness_adapters.cli.synth import app
from harness_adapters.errors import StoreError
from harness_adapters.progress import Quiet
from harness_adapters.synthesis.candidate import TaskType
from harness_adapters.synthesis.explain import write_page
from harness_adapters.synthesis.licences import Licences, read_licences
from harness_adapters.synthesis.miners import Found, Refusal
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.pipeline import Options, build
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.tasks import load_dataset
from synthesis.candidates import PROVENANCE, output, repair

LICENSED = Options(Licences("Apache-2.0"), workers=1)


def log(place: Path, name: str, text: str = "Repair it.") -> Path:
    """A session of pi with one request and one answer."""
    rows = [
        {"type": "session", "version": 3, "id": name, "cwd": "/app"},
        {"type": "message", "id": "a", "message": {"role": "user", "content": text}},
        {
            "type": "message",
            "id": "b",
            "parentId": "a",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
        },
    ]
    path = place / f"{name}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class Mine:
    """A miner that gives what a test says, and counts."""

    def __init__(self, found: dict[str, list[Found]]) -> None:
        self.found, self.seen = found, []

    def __call__(self, line: Timeline, licence: str) -> Iterable[Found]:
        session = line.session
        self.seen.append(session.id)
        for one in self.found.get(session.id, []):
            if isinstance(one, Refusal):
                yield one
            else:
                origin = replace(PROVENANCE, session=session.id, licence=licence)
                yield replace(one, provenance=origin)


async def test_every_session_ends_with_one_outcome_and_a_run_goes_on(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for name in ("good", "twin", "leaky", "refused", "idle"):
        log(logs, name)
    log(logs, "evaluation", "Solve django__django-10973, please.")
    (logs / "broken.jsonl").write_text("no log\n")
    mine = Mine(
        {
            "good": [output()],
            "twin": [output()],
            "leaky": [repair(instruction="Make test_shares_add_up pass; that is all to be done.")],
            "refused": [Refusal(TaskType.BUILD, Reason.NEEDS_WRITER, "a test is missing")],
        }
    )
    out = tmp_path / "out"
    summary = await build([str(logs)], out, [mine], LICENSED, Quiet())
    outcomes = {each.session or each.source: each.outcome for each in summary.sessions}
    assert outcomes == {
        "good": "kept",
        "twin": Reason.NEAR_DUPLICATE,
        "leaky": Reason.LEAK_TESTS,
        "refused": Reason.NEEDS_WRITER,
        "idle": Reason.NO_WORK,
        "evaluation": Reason.CONTAMINATED,
        "broken.jsonl": Reason.UNREADABLE,
    }
    assert sum(summary.funnel().values()) == len(summary.sessions) == 7
    assert "evaluation" not in mine.seen

    dataset = load_dataset(out)
    assert [task.id for task in dataset.tasks] == [output().id]
    row = json.loads((out / "manifest.jsonl").read_text())
    assert (row["session"], row["licence"], row["type"]) == ("good", "Apache-2.0", "repair")
    assert row["mutation_score"] >= 0.8 and row["path"] == f"{row['split']}/{row['task']}"
    card = (out / "README.md").read_text()
    assert "- apache-2.0" in card and "| leak_tests | 1 | 14.3% |" in card

    # Again: what is finished isn't looked at, what only lacked a model is.
    with pytest.raises(StoreError, match="--resume"):
        await build([str(logs)], out, [mine], LICENSED, Quiet())
    log(logs, "late")
    mine.seen.clear()
    again = await build([str(logs)], out, [mine], replace(LICENSED, resume=True), Quiet())
    assert sorted(mine.seen) == ["late", "refused"]
    assert len(again.sessions) == 8 and len(again.tasks) == 1

    kept = write_page(out, "good").read_text()
    assert "1 task kept" in kept and "mutation score" in kept and "not reached" not in kept
    dropped = write_page(out, "leaky").read_text()
    assert "Dropped: leak tests" in dropped and "not reached" in dropped
    assert "Hidden tests, or their names, stand where the agent sees them." in dropped
    with pytest.raises(StoreError, match="no session named"):
        write_page(out, "nobody")


async def test_without_a_licence_nothing_is_mined(tmp_path: Path) -> None:
    path = log(tmp_path, "good")
    mine = Mine({"good": [output()]})
    summary = await build([str(path)], tmp_path / "out", [mine], Options(), Quiet())
    assert summary.funnel() == {"unlicensed": 1} and not mine.seen
    assert not (tmp_path / "out" / "train").exists()


async def test_a_miner_that_breaks_doesnt_end_the_run(tmp_path: Path) -> None:
    def broken(line: Timeline, licence: str) -> Iterable[Found]:
        raise KeyError("odd")

    log(tmp_path, "one")
    summary = await build([str(tmp_path)], tmp_path / "o", [broken], LICENSED, Quiet())
    assert summary.funnel() == {"miner_failed": 1}
    assert "KeyError" in summary.sessions[0].detail


def test_licences_by_table(tmp_path: Path) -> None:
    table = tmp_path / "MANIFEST.tsv"
    table.write_text("file\tlicence\npi/a.jsonl\tMIT\n")
    found = read_licences(table, "Apache-2.0")
    assert found.of(Path("/x/pi/a.jsonl")) == "MIT"
    assert found.of(Path("/x/codex/a.jsonl")) == "Apache-2.0"


def test_the_command_says_what_is_wrong(tmp_path: Path) -> None:
    path = log(tmp_path, "good")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, [str(path), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "unlicensed" in done.output and "0 tasks from 1 sessions" in done.output
    done = CliRunner().invoke(app, ["explain", "good", "--out", str(out)])
    assert done.exit_code == 0 and Path(done.output.strip()).is_file()
    done = CliRunner().invoke(app, [str(path), "--out", str(out)])
    assert isinstance(done.exception, StoreError)
