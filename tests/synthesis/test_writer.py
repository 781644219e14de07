"""Drafts that a model completes: what it is asked, what is made of its answer, what it may cost."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_adapters.errors import EngineError
from harness_adapters.progress import Quiet
from harness_adapters.synthesis.assemble import Summary
from harness_adapters.synthesis.candidate import Candidate
from harness_adapters.synthesis.endpoint import Endpoint
from harness_adapters.synthesis.licences import Licences
from harness_adapters.synthesis.miners import Draft, Found, Lack
from harness_adapters.synthesis.miners.questions import ASK
from harness_adapters.synthesis.miners.timeline import Timeline
from harness_adapters.synthesis.pipeline import Options, build
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.synthesis.writer import WriterError, write
from synthesis.candidates import FIXED, PROVENANCE, TESTS, question, repair
from synthesis.scripted_endpoint import scripted_endpoint
from synthesis.test_pipeline import log

CONTRACT = "shares of 90 cents among 3 people are equal; all shares add up to the total."
GOOD_TESTS = json.dumps({"contract": CONTRACT, "tests": {"test_shares.py": TESTS.decode()}})
GOOD_QUESTION = json.dumps(
    {"question": "What do the amounts of Rome in sales.csv add up to, as a whole number?"}
)


STUB = FIXED.replace(b"i < rest", b"i <= rest").replace(b"// 100", b"// 10")
INSTRUCTION = (
    "bill.py shares 90 cents among 3 people unevenly, and label prints nonsense. Correct it."
)


def untested() -> Draft:
    return Draft(repair(hidden={}), Lack.TESTS)


def unasked() -> Draft:
    return Draft(question(instruction=""), Lack.QUESTION)


async def written(draft: Draft, answer: str, place: Path) -> Candidate:
    with scripted_endpoint(lambda body: answer) as endpoint:
        return await write(draft, Endpoint(endpoint.url, "m", place))


async def test_tests_and_their_words_become_part_of_the_task(tmp_path: Path) -> None:
    fenced = f"Here it is:\n```json\n{GOOD_TESTS}\n```\nDone."
    found = await written(untested(), fenced, tmp_path)
    assert found.hidden == {"test_shares.py": TESTS}
    assert found.instruction == f"{repair().instruction}\n\n{CONTRACT}"
    assert (found.before, found.after) == (repair().before, repair().after)


async def test_further_tests_stand_beside_the_sessions_own(tmp_path: Path) -> None:
    draft = Draft(repair(), Lack.MORE_TESTS)
    found = await written(draft, GOOD_TESTS, tmp_path)
    assert found.hidden == {**repair().hidden, "test_shares.py": TESTS}
    same = GOOD_TESTS.replace("test_shares.py", "test_bill.py")
    with pytest.raises(WriterError, match="is there already"):
        await written(draft, same, tmp_path / "other")


async def test_a_question_is_asked_about_named_files(tmp_path: Path) -> None:
    found = await written(unasked(), GOOD_QUESTION, tmp_path)
    assert found.instruction == json.loads(GOOD_QUESTION)["question"] + ASK
    assert found.check == question().check


@pytest.mark.parametrize(
    ("draft", "answer", "why"),
    [
        (untested(), "I can't.", "no JSON object"),
        (untested(), '{"contract": "too bad", ', "no JSON object"),
        (untested(), json.dumps({"contract": CONTRACT}), "must hold 1 to 4"),
        (untested(), GOOD_TESTS.replace("test_shares.py", "../test_shares.py"), "can't be a test"),
        (untested(), GOOD_TESTS.replace("test_shares.py", "conftest.py"), "can't be a test"),
        (untested(), GOOD_TESTS.replace("import unittest", "import ("), "test_shares.py: "),
        (untested(), GOOD_TESTS.replace(CONTRACT, "x"), "`contract` must be"),
        (unasked(), json.dumps({"question": "How much is it in all?"}), "doesn't name sales.csv"),
        (unasked(), json.dumps({"question": ["sales.csv"]}), "`question` must be"),
    ],
)
async def test_an_answer_that_cant_be_used(
    draft: Draft, answer: str, why: str, tmp_path: Path
) -> None:
    with pytest.raises(WriterError, match=why):
        await written(draft, answer, tmp_path)


async def test_answers_are_kept_and_the_budgets_hold(tmp_path: Path) -> None:
    with scripted_endpoint(lambda body: GOOD_QUESTION) as endpoint:
        first = Endpoint(endpoint.url, "m", tmp_path / "answers", token_budget=10)
        one = await write(unasked(), first)
        assert (first.asked, first.tokens) == (1, 10)
        again = Endpoint(endpoint.url, "m", tmp_path / "answers", budget=0)
        assert await write(unasked(), again) == one and again.asked == 0
        with pytest.raises(EngineError, match="10 tokens is spent; raise --token-budget"):
            await write(unasked(), first, "say more")
        with pytest.raises(EngineError, match="0 answers is spent; raise --budget"):
            await write(unasked(), again, "say more")
        assert len(endpoint.asked) == 1
    said = endpoint.asked[0]["messages"]
    assert "508" in said[1]["content"] and "Rome,117" in said[1]["content"]


async def build_one(place: Path, draft: Draft, endpoint: Endpoint | None, resume: bool) -> Summary:
    def mine(line: Timeline, licence: str) -> Iterable[Found]:
        origin = replace(PROVENANCE, session=line.session.id, licence=licence)
        yield Draft(replace(draft.candidate, provenance=origin), draft.lacks)

    path = log(place, "session")
    options = Options(Licences("MIT"), endpoint=endpoint, workers=1, resume=resume)
    return await build([str(path)], place / "out", [mine], options, Quiet())


async def test_without_a_model_a_draft_waits_and_with_one_it_is_finished(tmp_path: Path) -> None:
    """A spoiled answer is written anew, with the complaint; then the gates have their say."""

    def answer(body: dict[str, Any]) -> str:
        system = body["messages"][0]["content"]
        if "Guess" in system:
            return str(100 + body["seed"])
        told = "Dropped because" in body["messages"][-1]["content"]
        return GOOD_QUESTION if told else GOOD_QUESTION.replace("?", " (508)?")

    summary = await build_one(tmp_path, unasked(), None, False)
    assert summary.funnel() == {Reason.NEEDS_WRITER: 1}
    with scripted_endpoint(answer) as endpoint:
        model = Endpoint(endpoint.url, "m", tmp_path / "answers")
        summary = await build_one(tmp_path, unasked(), model, True)
    assert summary.funnel() == {"kept": 1}
    [kept] = summary.tasks
    assert kept.record.instruction.startswith("What do the amounts of Rome in sales.csv")
    complaints = [body["messages"][-1]["content"] for body in endpoint.asked[:2]]
    assert "leak_answer" not in complaints[0] and "leak_answer" in complaints[1]
    assert kept.session.tokens == 10 * len(endpoint.asked) == 10 * 22


async def test_a_model_that_writes_nonsense_is_a_reason(tmp_path: Path) -> None:
    with scripted_endpoint(lambda body: "No.") as endpoint:
        model = Endpoint(endpoint.url, "m", tmp_path / "answers")
        summary = await build_one(tmp_path, untested(), model, False)
    assert summary.funnel() == {Reason.WRITER_FAILED: 1}
    assert len(endpoint.asked) == 2 and "no JSON object" in summary.sessions[0].detail


@pytest.mark.heavy
async def test_weak_tests_of_a_session_are_completed(tmp_path: Path) -> None:
    weak = b"from bill import split\n\n\ndef test_it():\n    assert split(90, 3)[0] == 30\n"
    one = repair(hidden={"test_bill.py": weak}, before={"bill.py": STUB}, instruction=INSTRUCTION)

    def mine(line: Timeline, licence: str) -> Iterable[Found]:
        yield replace(one, provenance=replace(PROVENANCE, licence=licence))

    with scripted_endpoint(lambda body: GOOD_TESTS) as endpoint:
        model = Endpoint(endpoint.url, "m", tmp_path / "answers")
        options = Options(Licences("MIT"), endpoint=model, workers=1)
        path = log(tmp_path, "session")
        summary = await build([str(path)], tmp_path / "out", [mine], options, Quiet())
    assert summary.funnel() == {"kept": 1}
    assert "hunk_untested" in endpoint.asked[0]["messages"][-1]["content"]
    assert CONTRACT in summary.tasks[0].record.instruction


@pytest.mark.heavy
async def test_written_tests_pass_the_gates_or_not(tmp_path: Path) -> None:
    weak = json.loads(GOOD_TESTS)
    weak["tests"] = {"test_one.py": "from bill import label\n\n\ndef test_it():\n    label(1)\n"}
    answers = iter([json.dumps(weak), GOOD_TESTS])
    with scripted_endpoint(lambda body: next(answers)) as endpoint:
        model = Endpoint(endpoint.url, "m", tmp_path / "answers")
        summary = await build_one(tmp_path, untested(), model, False)
    assert summary.funnel() == {"kept": 1}
    assert "null_rewarded" in endpoint.asked[1]["messages"][-1]["content"]
