"""Each gate on real sandboxes: a sound candidate passes, each kind of bad one gets its code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness_adapters.synthesis import harbor
from harness_adapters.synthesis.candidate import Candidate, Check, CheckKind
from harness_adapters.synthesis.gates.lists import Decontamination, read_lists
from harness_adapters.synthesis.gates.sequence import Passage, run_gates
from harness_adapters.synthesis.gates.trial import Trial
from harness_adapters.synthesis.reasons import Reason
from synthesis.candidates import (
    BROKEN,
    FIXED,
    INSTRUCTION,
    PROVENANCE,
    TESTS,
    output,
    question,
    repair,
)


async def judged(one: Candidate, place: Path, **options: object) -> list[Passage]:
    task = harbor.write(one, place / one.id)
    trial = Trial(one, task, **({"decontamination": Decontamination()} | options))  # type: ignore[arg-type]
    return await run_gates(trial)


async def reason(one: Candidate, place: Path, **options: object) -> Reason | None:
    return (await judged(one, place, **options))[-1].verdict.reason


async def test_a_sound_repair_passes_every_gate(tmp_path: Path) -> None:
    passages = await judged(repair(), tmp_path)
    last = passages[-1]
    assert last.verdict.reason is None, (last.gate, last.verdict.detail)
    facts = {name: value for each in passages for name, value in each.verdict.facts.items()}
    assert facts["mutation_score"] >= 0.8 and facts["hunks"] == 1
    assert facts["degenerate_attempts"] >= 12
    assert "31" in str(facts["failure"])


async def test_a_sound_check_of_output_passes(tmp_path: Path) -> None:
    last = (await judged(output(), tmp_path))[-1]
    assert last.verdict.reason is None, (last.gate, last.verdict.detail)


async def test_a_question_needs_a_model_that_guesses(tmp_path: Path) -> None:
    assert await reason(question(), tmp_path) is Reason.GUESS_UNMEASURED


def hidden_tests(extra: bytes) -> dict[str, bytes]:
    return {"test_bill.py": TESTS + extra}


STUB = b"\n    def test_more(self):\n"

BAD: dict[str, tuple[Candidate, Reason]] = {
    "no licence": (
        repair(provenance=replace(PROVENANCE, licence="")),
        Reason.UNLICENSED,
    ),
    "an evaluation's instance": (
        repair(provenance=replace(PROVENANCE, session="astropy__astropy-12907")),
        Reason.CONTAMINATED,
    ),
    "no instruction": (repair(instruction="Fix it."), Reason.TOO_LARGE),
    "a large file": (
        repair(before={"bill.py": BROKEN, "data.bin": b"x" * (2 << 20)}),
        Reason.TOO_LARGE,
    ),
    "version control": (
        repair(before={"bill.py": BROKEN, ".git/HEAD": b"ref: refs/heads/main\n"}),
        Reason.LEAK_HISTORY,
    ),
    "a solution in the instruction": (
        repair(
            instruction=INSTRUCTION
            + "\nreturn [share + 1 if i < rest else share for i in range(people)]"
        ),
        Reason.LEAK_SOLUTION,
    ),
    "a test's name in the instruction": (
        repair(instruction=INSTRUCTION + " See test_shares_add_up."),
        Reason.LEAK_TESTS,
    ),
    "the tests among the files": (
        repair(before={"bill.py": BROKEN, "test_bill.py": TESTS}),
        Reason.LEAK_TESTS,
    ),
    "the expected output in the instruction": (
        output(instruction="Make totals.py print Oslo: 205 and then Rome: 508, please, as it did."),
        Reason.LEAK_ANSWER,
    ),
    "the answer in the question": (
        question(instruction="Is the sum of the amounts for Rome 508? Write it to answer.txt."),
        Reason.LEAK_ANSWER,
    ),
    "what was said later": (
        repair(instruction=INSTRUCTION + " It was an off-by-one: the comparison must be strict."),
        Reason.LEAK_LATER,
    ),
    "a missing program": (repair(needs=("python3", "no-such-program")), Reason.RUNTIME_MISSING),
    "nothing to do": (repair(before={"bill.py": FIXED}), Reason.NULL_REWARDED),
    "a missing module": (
        repair(before={"README.md": b"# Bills\n"}),
        Reason.WRONG_FAILURE,
    ),
    "a missing program of the check": (
        output(check=Check(CheckKind.OUTPUT, "no-such-program", "x\n")),
        Reason.WRONG_FAILURE,
    ),
    "an oracle that doesn't solve it": (
        repair(after={"bill.py": BROKEN + b"\nOTHER = 1\n"}),
        Reason.ORACLE_FAILS,
    ),
    "tests that depend on their order": (
        repair(
            hidden=hidden_tests(
                STUB + b"        split.seen = True\n"
                b"        self.assertEqual(split(90, 3), [30, 30, 30])\n"
                b"\n    def test_z(self):\n        self.assertTrue(split.seen)\n"
                b"\n    def test_zz(self):\n        self.assertTrue(split.seen)\n"
                b"\n    def test_zzz(self):\n        self.assertTrue(split.seen)\n"
            )
        ),
        Reason.FLAKY,
    ),
    "tests that depend on the hash seed": (
        repair(
            hidden=hidden_tests(
                STUB + b"        import os\n"
                b"        self.assertEqual(os.environ['PYTHONHASHSEED'], '0')\n"
            )
        ),
        Reason.FLAKY,
    ),
    "a check that only wants an exit code": (
        output(
            before={"totals.py": b"raise SystemExit(1)\n"},
            after={"totals.py": b"import sys\n\nsys.exit(0)\n"},
            check=Check(CheckKind.OUTPUT, "python3 totals.py", ""),
        ),
        Reason.DEGENERATE_REWARDED,
    ),
    "a part that no test looks at": (
        repair(
            after={"bill.py": FIXED.replace(b'"""`1234`', b'cents = int(cents)\n    """`1234`')}
        ),
        Reason.HUNK_UNTESTED,
    ),
    "tests that look at one case": (
        repair(
            hidden={
                "test_bill.py": b"from bill import split\n\n\n"
                b"def test_one():\n    assert split(90, 3) == [30, 30, 30]\n"
            },
        ),
        Reason.WEAK_TESTS,
    ),
    "a change in another language": (
        output(
            before={"run.sh": b"echo 17\n"},
            after={"run.sh": b"echo forty-two\n"},
            check=Check(CheckKind.OUTPUT, "bash run.sh", "forty-two\n"),
        ),
        Reason.MUTATION_UNMEASURED,
    ),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_candidate_is_dropped_with_its_reason(name: str, tmp_path: Path) -> None:
    one, expected = BAD[name]
    last = (await judged(one, tmp_path))[-1]
    assert last.verdict.reason is expected, (last.gate, last.verdict.reason, last.verdict.detail)


async def test_lists_of_evaluations_are_honoured(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    listed.write_text("acme/bills\n")
    one = repair(provenance=replace(PROVENANCE, source="acme/bills.jsonl"))
    found = await reason(one, tmp_path, decontamination=read_lists([listed]))
    assert found is Reason.CONTAMINATED
    listed.write_text(INSTRUCTION + "\n")
    found = await reason(repair(), tmp_path / "b", decontamination=read_lists([listed]))
    assert found is Reason.CONTAMINATED
