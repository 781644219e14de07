"""Gates that run the verifier: nothing done, the oracle, attempts that solve nothing."""

from __future__ import annotations

import re

from harness_adapters.sandbox import Verification
from harness_adapters.synthesis.candidate import CheckKind, TaskType
from harness_adapters.synthesis.gates.attempts import degenerate
from harness_adapters.synthesis.gates.trial import (
    Trial,
    Verdict,
    drop,
    last_line,
    passed,
    result_of,
)
from harness_adapters.synthesis.reasons import Reason
from harness_adapters.tasks.score import score_oracle

REPEATS = 3
MAX_SECONDS = 25.0
"""Of the processor, for one check of the oracle's work."""
_MISSING = re.compile(r"^(ImportError|ModuleNotFoundError|SyntaxError|IndentationError)\b")
_NO_FILE = re.compile(r"can't open file '(?:/app/)?([^']+)'|([\w./-]+): No such file or directory")


async def nothing_done(trial: Trial) -> Verdict:
    """The state before scores 0 each time, and for the right reason."""
    for number in range(REPEATS):
        found = await trial.score(trial.candidate.before)
        if _too_slow(found):
            return drop(Reason.TOO_SLOW, f"nothing done: {last_line(found)}")
        if found.score is None:
            return drop(Reason.FLAKY, f"nothing done: no reward ({found.error})")
        if found.score > 0:
            reason = Reason.FLAKY if number else Reason.NULL_REWARDED
            return drop(reason, f"nothing done scored {found.score:g}")
    if problem := wrong_failure(trial, result_of(found)):
        return drop(Reason.WRONG_FAILURE, problem)
    return passed(failure=last_line(found))


def wrong_failure(trial: Trial, result: dict[str, object]) -> str:
    """Why a failure says nothing about the program; empty when it does."""
    one = trial.candidate
    if one.check.kind is CheckKind.ANSWER:
        return ""
    if one.check.kind is CheckKind.OUTPUT:
        complaint = str(result.get("stderr", ""))
        if result.get("exit") in (126, 127) or _MISSING.search(complaint):
            return f"the command can't run: {complaint[:160]}"
        if named := _NO_FILE.search(complaint):
            name = str(named[1] or named[2])
            if one.type is not TaskType.BUILD or name not in one.instruction:
                return f"{name} is missing, and the instruction doesn't ask for it"
        return ""
    outcomes = result.get("outcomes")
    if not isinstance(outcomes, list) or not outcomes:
        return "the tests don't run to their end"
    for outcome in outcomes:
        if _MISSING.search(outcome["detail"]):
            return f"{outcome['test']}: {outcome['detail'][:160]}"
    if any(
        outcome["outcome"] == "failed"
        or (outcome["outcome"] == "error" and outcome["where"] == "program")
        for outcome in outcomes
    ):
        return ""
    return f"no assertion fails: {outcomes[0]['detail'][:160]}"


async def oracle(trial: Trial) -> Verdict:
    """The session's work scores 1: by its script, then afresh, then in another order."""
    script, first = await score_oracle(trial.task)
    trial.scores += 1
    if first.score != 1:
        why = script.stderr.decode(errors="replace").strip().splitlines()
        detail = last_line(first) + (f"; solve.sh: {why[-1][:120]}" if why else "")
        return drop(Reason.TOO_SLOW if _too_slow(first) else Reason.ORACLE_FAILS, detail)
    seconds = _used(first)
    for env in ({}, {"CHECK_ORDER": "reversed", "PYTHONHASHSEED": "4711"}):
        _, found = await score_oracle(trial.task, env=env)
        trial.scores += 1
        seconds = max(seconds, _used(found))
        if found.score != 1:
            how = "in another order" if env else "a second time"
            reason = Reason.TOO_SLOW if _too_slow(found) else Reason.FLAKY
            return drop(reason, f"{how}: {last_line(found)}")
    if seconds > MAX_SECONDS:
        return drop(Reason.TOO_SLOW, f"a check takes {seconds:.0f} s of the processor")
    return passed(verify_seconds=round(seconds, 2))


def _used(verification: Verification) -> float:
    """Seconds of the processor that the check took; comparing an answer takes none."""
    return float(result_of(verification).get("cpu_seconds", 0.0))


def _too_slow(verification: Verification) -> bool:
    return verification.timed_out or "FAILED: still running after" in verification.output


async def degenerate_attempts(trial: Trial) -> Verdict:
    """No attempt that solves nothing scores above 0."""
    count = 0
    for attempt in degenerate(trial.candidate, trial.task):
        count += 1
        found = await trial.score(attempt.files)
        if found.score is not None and found.score > 0:
            return drop(Reason.DEGENERATE_REWARDED, f"{attempt.name} scored {found.score:g}")
    return passed(degenerate_attempts=count)
